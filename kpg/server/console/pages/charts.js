// @ts-check
/** Throughput and latency of the last ten minutes. */
import uPlot from "../vendor/uplot.js";
import { element, setText } from "../dom.js";
import { failure } from "../failures.js";
import { beforeNextFrame } from "../frames.js";
import { duration, rate } from "../formats.js";
import { Poller } from "../poller.js";
import { colour } from "../theme.js";

export const title = "Charts";
const HISTORY_SECONDS = 600;
const CHART_PIXELS = 220;

/**
 * @typedef {(row: Record<string, any>) => number | null} Reading
 * @typedef {{ title: string, lines: { name: string, read: Reading }[], shown: (value: number | null) => string,
 *             empty: number | null, isLog?: boolean }} ChartKind
 *   empty: the value of an interval without events; isLog: whether a step upwards is ten times as much
 * @type {ChartKind[]}
 */
const CHARTS = [
  { title: "Requests", shown: rate, empty: 0, lines: [
    { name: "requests", read: (row) => row.requests / row.seconds },
    { name: "failed", read: (row) => row.failed / row.seconds }] },
  { title: "Latency of requests", shown: duration, empty: null, isLog: true, lines: [
    { name: "median", read: (row) => row.request_p50 }, { name: "99th percentile", read: (row) => row.request_p99 }] },
  { title: "Changes sent to clients", shown: rate, empty: 0, lines: [
    { name: "rows", read: (row) => row.change_rows / row.seconds }] },
  { title: "Latency of changes", shown: duration, empty: null, isLog: true, lines: [
    { name: "median", read: (row) => row.change_p50 }, { name: "99th percentile", read: (row) => row.change_p99 }] },
];

/** @type {import("../main.js").ConsolePage["show"]} */
export function show(page, { db }) {
  const charts = CHARTS.map((kind) => new Chart(kind));
  const problems = element("div", {});
  page.append(element("h2", { class: "hidden" }, title), problems,
    element("div", { class: "charts" }, ...charts.map((chart) => chart.element)));
  const poller = new Poller(db, () => [{ table: "throughput" }], (table, rows, error) => {
    if (error) problems.replaceChildren(failure(error));
    for (const chart of charts) chart.set(rows);
  });
  const repaint = () => charts.forEach((chart) => chart.build());
  addEventListener("theme", repaint);
  return () => {
    poller.stop();
    removeEventListener("theme", repaint);
    for (const chart of charts) chart.close();
  };
}

/** One chart, with its last values in words. */
class Chart {
  /** @param {ChartKind} kind */
  constructor(kind) {
    this._kind = kind;
    /** @type {any[][]} */
    this._data = [[], ...kind.lines.map(() => [])];
    /** @type {any} */
    this._plot = null;
    this._values = kind.lines.map(({ name }, index) => element("span", { class: `line line-${index + 1}` }, `${name} –`));
    this._area = element("div", { role: "img", "aria-label": `${kind.title} over the last ten minutes` });
    this.element = element("figure", {},
      element("figcaption", {}, element("strong", {}, kind.title), ...this._values), this._area);
    this._draw = () => this._plot?.setData(this._data);
    this._resized = new ResizeObserver(() => this._fit());
    this._resized.observe(this._area);
  }

  /** @param {Record<string, any>[]} rows */
  set(rows) {
    const { times, filled } = withGaps(rows, Date.now() / 1000);
    this._data = [times, ...this._kind.lines.map(({ read }) => filled.map((row) => (row ? read(row) : this._kind.empty)))];
    const last = rows.at(-1);
    this._kind.lines.forEach(({ name, read }, index) =>
      setText(this._values[index], `${name} ${last ? this._kind.shown(read(last)) : "–"}`));
    beforeNextFrame(this._draw);
  }

  _fit() {
    if (!this._plot) this.build();
    else this._plot.setSize({ width: this._area.clientWidth, height: CHART_PIXELS });
  }

  /** Build the plot, with the colours of the present theme. */
  build() {
    this._plot?.destroy();
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
    this._plot = new /** @type {any} */ (uPlot)({
      width: Math.max(100, this._area.clientWidth),
      height: CHART_PIXELS,
      legend: { show: false },
      cursor: { show: false },
      series: [{}, ...this._kind.lines.map(({ name }, index) =>
        ({ label: name, width: 2, spanGaps: true, stroke: colour(`plot-${index + 1}`) }))],
      axes: [{ ...axis, values: labels(clock) }, { ...axis, size: 70, values: labels(this._kind.shown),
        ...(this._kind.isLog ? { splits: powersBetween, filter: all } : {}) }],
      scales: { y: this._kind.isLog ? { distr: 3, range: powersOfTen } : { range: fromZero } },
    }, this._data, this._area);
  }

  close() {
    this._resized.disconnect();
    this._plot?.destroy();
  }
}

/** @param {any} plot @param {number} low @param {number} high @returns {[number, number]} */
function fromZero(plot, low, high) {
  return [0, high > 0 ? high * 1.1 : 1];
}

/** The powers of ten around some durations: a single slow request leaves the others visible.
 *  @param {any} plot @param {number | null} low @param {number | null} high @returns {[number, number]} */
function powersOfTen(plot, low, high) {
  if (!low || !high) return [1e-3, 1];
  const below = 10 ** Math.floor(Math.log10(low));
  return [below, Math.max(10 * below, 10 ** Math.ceil(Math.log10(high)))];
}

/** The powers of ten from one to another. @param {any} plot @param {number} axis @param {number} low @param {number} high */
function powersBetween(plot, axis, low, high) {
  const powers = [];
  for (let power = Math.round(Math.log10(low)); power <= Math.round(Math.log10(high)); power++) powers.push(10 ** power);
  return powers;
}

/** All ticks of an axis have labels. @param {any} plot @param {number[]} splits */
function all(plot, splits) {
  return splits;
}

/** A function that labels the ticks of an axis.
 *  @param {(value: number) => string} shown */
function labels(shown) {
  return (/** @type {any} */ plot, /** @type {number[]} */ values) => values.map(shown);
}

/** The time of day. @param {number} seconds since 1970 */
function clock(seconds) {
  const text = new Date(seconds * 1000).toTimeString();
  return seconds % 60 ? text.slice(0, 8) : text.slice(0, 5);
}

/** The rows of all intervals of the last ten minutes; null for those without events.
 *  @param {Record<string, any>[]} rows @param {number} now in seconds since 1970 */
export function withGaps(rows, now) {
  const step = rows[0]?.seconds ?? 2;
  const byStart = new Map(rows.map((row) => [row.start, row]));
  const last = Math.max(rows.at(-1)?.start ?? 0, Math.floor(now / step) * step - step);
  const times = [];
  const filled = [];
  for (let start = last - HISTORY_SECONDS + step; start <= last; start += step) {
    times.push(start);
    filled.push(byStart.get(start) ?? null);
  }
  return { times, filled };
}
