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
 *             empty: number | null }} ChartKind  empty: the value of an interval without events
 * @type {ChartKind[]}
 */
const CHARTS = [
  { title: "Requests", shown: rate, empty: 0, lines: [
    { name: "requests", read: (row) => row.requests / row.seconds },
    { name: "failed", read: (row) => row.failed / row.seconds }] },
  { title: "Latency of requests", shown: duration, empty: null, lines: [
    { name: "median", read: (row) => row.request_p50 }, { name: "99th percentile", read: (row) => row.request_p99 }] },
  { title: "Changes sent to clients", shown: rate, empty: 0, lines: [
    { name: "rows", read: (row) => row.change_rows / row.seconds }] },
  { title: "Latency of changes", shown: duration, empty: null, lines: [
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
    this._summary = element("span", {}, "–");
    this._area = element("div", { role: "img", "aria-label": `${kind.title} over the last ten minutes` });
    this.element = element("figure", {},
      element("figcaption", {}, element("strong", {}, kind.title), this._summary), this._area);
    this._draw = () => this._plot?.setData(this._data);
    this._resized = new ResizeObserver(() => this._fit());
    this._resized.observe(this._area);
  }

  /** @param {Record<string, any>[]} rows */
  set(rows) {
    const { times, filled } = withGaps(rows, Date.now() / 1000);
    this._data = [times, ...this._kind.lines.map(({ read }) => filled.map((row) => (row ? read(row) : this._kind.empty)))];
    const last = rows.at(-1);
    const values = this._kind.lines.map(({ name, read }) => `${name} ${last ? this._kind.shown(read(last)) : "–"}`);
    setText(this._summary, values.join(", "));
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
      axes: [axis, { ...axis, size: 70,
        values: (/** @type {any} */ plot, /** @type {number[]} */ values) => values.map((value) => this._kind.shown(value)) }],
      scales: { y: { range: fromZero } },
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
