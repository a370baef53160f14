// @ts-check
/** Numbers, sizes, durations and values as people read them. */

const NUMBERS = new Intl.NumberFormat("en");
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** @param {number | bigint | null | undefined} value @returns {string} */
export function count(value) {
  return value === null || value === undefined ? "–" : NUMBERS.format(value);
}

/** @param {number | null | undefined} value @returns {string} */
export function size(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  let scaled = value;
  while (scaled >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit && scaled < 10 ? scaled.toFixed(1) : count(Math.round(scaled))} ${UNITS[unit]}`;
}

/** @param {number | null | undefined} seconds @returns {string} */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toPrecision(3)} ms`;
  return seconds < 100 ? `${seconds.toPrecision(3)} s` : `${count(Math.round(seconds))} s`;
}

/** @param {number | null | undefined} value @returns {string} */
export function rate(value) {
  if (value === null || value === undefined) return "–";
  return `${value < 10 && value > 0 ? value.toFixed(1) : count(Math.round(value))}/s`;
}

/** @param {number | null | undefined} value between 0 and 1 @returns {string} */
export function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%`;
}

/** A value of a row: the protocol writes dates and decimals as objects of one member. @param {any} value @returns {string} */
export function shown(value) {
  if (value === null || value === undefined) return "null";
  if (value instanceof Uint8Array) return `\\x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  if (typeof value === "object") return String(Object.values(value)[0]);
  return String(value);
}
