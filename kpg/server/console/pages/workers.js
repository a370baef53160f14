// @ts-check
/** The workers and their state, the sessions, and what sessions and tenants use. */
import { element } from "../dom.js";
import { count, duration, percent, size } from "../formats.js";
import { Poller } from "../poller.js";
import { Rates } from "../rates.js";
import { VirtualTable } from "../virtual_table.js";

export const title = "Workers";

/** @type {import("../main.js").ConsolePage["show"]} */
export function show(page, { db }) {
  const busy = new Rates();
  const workers = new VirtualTable("Workers", [
    { title: "Worker", numeric: true, text: (row) => count(row.worker), value: (row) => row.worker },
    { title: "Process", numeric: true, text: (row) => String(row.process), value: (row) => row.process },
    { title: "State", text: (row) => row.state },
    { title: "Busy", numeric: true, text: (row) => percent(busy.of(String(row.worker))),
      value: (row) => busy.of(String(row.worker)) },
    { title: "CPU time", numeric: true, text: (row) => duration(row.cpu_seconds), value: (row) => row.cpu_seconds },
    { title: "Dataflows", numeric: true, text: (row) => count(row.dataflows), value: (row) => row.dataflows },
    { title: "Arrangements", numeric: true, text: (row) => size(row.arrangement_bytes),
      value: (row) => row.arrangement_bytes },
    { title: "Memory", numeric: true, text: (row) => size(row.resident_bytes), value: (row) => row.resident_bytes },
    { title: "Limit", numeric: true, text: (row) => size(row.limit_bytes), value: (row) => row.limit_bytes },
    { title: "Log", numeric: true, text: (row) => size(row.log_bytes), value: (row) => row.log_bytes },
  ], { sort: 0, filter: false, rowClass: (row) => (row.state.startsWith("cannot") ? "bad" : "") });
  const sessions = new VirtualTable("Sessions", [
    { title: "Session", numeric: true, text: (row) => String(row.session), value: (row) => row.session },
    { title: "Protocol", text: (row) => row.protocol },
    { title: "Role", text: (row) => row.role ?? "" },
    { title: "Tenant", text: (row) => row.tenant ?? "" },
    { title: "Queries", numeric: true, text: (row) => count(row.queries), value: (row) => row.queries },
    { title: "Requests", numeric: true, text: (row) => count(row.pending), value: (row) => row.pending },
    { title: "Unsent", numeric: true, text: (row) => count(row.waiting_messages), value: (row) => row.waiting_messages },
  ], { sort: 0 });
  const usage = new VirtualTable("Use of sessions and tenants", [
    { title: "Kind", text: (row) => row.kind },
    { title: "Name", text: (row) => row.name },
    { title: "Queries", numeric: true, text: (row) => count(row.queries), value: (row) => row.queries },
    { title: "Rows", numeric: true, text: (row) => count(row.kept_rows), value: (row) => row.kept_rows },
    { title: "Bytes", numeric: true, text: (row) => size(row.kept_bytes), value: (row) => row.kept_bytes },
    { title: "CPU time", numeric: true, text: (row) => duration(row.cpu_seconds), value: (row) => row.cpu_seconds },
  ], { sort: 5, descending: true });
  const tables = { workers, sessions, usage };
  for (const table of Object.values(tables)) table.element.classList.add("short");
  page.append(element("h2", { class: "hidden" }, title), ...Object.values(tables).map((table) => table.element));
  const wanted = Object.keys(tables).map((table) => ({ table }));
  const poller = new Poller(db, () => wanted, (table, rows, error) => {
    const target = /** @type {any} */ (tables)[table];
    if (table === "workers") busy.read(rows.map((row) => [String(row.worker), row.cpu_seconds]));
    target.set(rows);
    if (error) target.note(error.what);
  });
  return () => {
    poller.stop();
    for (const table of Object.values(tables)) table.close();
  };
}
