// @ts-check
/** The dataflows, and the graph of one: its operators, the busy ones marked, with what they keep. */
import { element } from "../dom.js";
import { failure } from "../failures.js";
import { count, duration, percent, size } from "../formats.js";
import { GraphView, heatOf } from "../graph_view.js";
import { Poller } from "../poller.js";
import { Rates } from "../rates.js";
import { VirtualTable } from "../virtual_table.js";

export const title = "Dataflows";
/** Columns for which there is room while no graph is shown. @type {import("../virtual_table.js").TableColumn[]} */
const DETAILS = [
  { title: "Pins", numeric: true, text: (row) => size(row.pinned_bytes), value: (row) => row.pinned_bytes },
  { title: "Keeps", numeric: true, text: (row) => size(row.kept_bytes), value: (row) => row.kept_bytes },
  { title: "Operators", numeric: true, text: (row) => count(row.operators), value: (row) => row.operators },
  { title: "State", text: (row) => row.state },
];

/** @type {import("../main.js").ConsolePage["show"]} */
export function show(page, { db, rest }) {
  const busy = new Rates();
  const busyOperators = new Rates();
  const dataflows = new VirtualTable("Dataflows", [
    { title: "Name", text: (row) => row.name, link: (row) => `#dataflows/${encodeURIComponent(row.name)}` },
    { title: "Busy", numeric: true, text: (row) => percent(busy.of(row.name)), value: (row) => busy.of(row.name) },
    { title: "CPU time", numeric: true, text: (row) => duration(row.cpu_seconds), value: (row) => row.cpu_seconds },
    { title: "Lag", numeric: true, text: (row) => count(row.lag), value: (row) => row.lag },
    ...(rest ? [] : DETAILS),
  ], { sort: 2, descending: true,
    rowClass: (row) => (row.state.startsWith("failed") ? "bad" : row.name === rest ? "chosen" : "") });
  dataflows.element.classList.add("tall");
  const view = new GraphView(`Graph of ${rest}`);
  const operators = new VirtualTable(`Operators of ${rest}`, [
    { title: "Operator", numeric: true, text: (row) => String(row.operator), value: (row) => row.operator },
    { title: "Name", text: (row) => row.name },
    { title: "Busy", numeric: true, text: (row) => percent(busyOperators.of(String(row.operator))),
      value: (row) => busyOperators.of(String(row.operator)) },
    { title: "CPU time", numeric: true, text: (row) => duration(row.cpu_seconds), value: (row) => row.cpu_seconds },
    { title: "Rows", numeric: true, text: (row) => count(row.rows), value: (row) => row.rows },
    { title: "Bytes", numeric: true, text: (row) => size(row.bytes), value: (row) => row.bytes },
  ], { sort: 3, descending: true });
  operators.element.classList.add("short");
  const problems = element("div", {});
  const both = element("div", { class: "columns" }, dataflows.element,
    element("div", { class: "table" }, element("h2", {}, rest), view.element, operators.element));
  page.append(element("h2", { class: "hidden" }, title), problems, rest ? both : dataflows.element);
  if (!rest) page.append(element("p", { class: "note" }, "Choose a dataflow to see its graph."));

  /** @type {any[]} */
  let shown = [];
  /** @type {any[]} */
  let channels = [];
  const wanted = () => [{ table: "dataflows" },
    ...(rest ? [{ table: "operators", name: rest }, { table: "channels", name: rest }] : [])];
  const poller = new Poller(db, wanted, (table, rows, error) => {
    if (error) problems.replaceChildren(failure(error));
    if (table === "dataflows") {
      busy.read(rows.map((row) => [row.name, row.cpu_seconds]));
      dataflows.set(rows);
    } else if (table === "channels") {
      channels = rows;
    } else {
      busyOperators.read(rows.map((row) => [String(row.operator), row.cpu_seconds]));
      shown = rows;
      operators.set(rows);
    }
  }, () => {
    if (shown.length) view.set(graphOf(shown, channels, busyOperators));
  });
  return () => {
    poller.stop();
    dataflows.close();
    operators.close();
  };
}

/** @param {any[]} operators @param {any[]} channels @param {Rates} busy @returns {import("../graph_view.js").GraphShape} */
function graphOf(operators, channels, busy) {
  const known = new Set(operators.map((row) => row.operator));
  const nodes = operators.map((row) => {
    const share = busy.of(String(row.operator));
    const link = row.imports_from ? `#dataflows/${encodeURIComponent(row.imports_from)}` : undefined;
    const kept = row.rows ? `, ${count(row.rows)} rows` : "";
    return { id: String(row.operator), lines: [row.name, `${percent(share)} · ${duration(row.cpu_seconds)}${kept}`],
      kind: link ? "relation" : "", heat: heatOf(share), link };
  });
  /** @type {[string, string][]} */
  const edges = channels.filter((row) => known.has(row.source) && known.has(row.target))
    .map((row) => [String(row.source), String(row.target)]);
  return { nodes, edges };
}
