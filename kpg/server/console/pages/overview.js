// @ts-check
/** What the db holds: relations and rules, arrangements with their rates, and who shares and pins each. */
import { element, setText } from "../dom.js";
import { failure } from "../failures.js";
import { count, rate, size } from "../formats.js";
import { Poller, asObjects } from "../poller.js";
import { Rates } from "../rates.js";
import { VirtualTable } from "../virtual_table.js";

export const title = "Overview";

/** @type {import("../main.js").ConsolePage["show"]} */
export function show(page, { db, rest }) {
  const rates = new Rates();
  const arrangementRates = new Rates();
  const facts = new Facts(["relations", "rules", "queries", "tenants", "dataflows", "arrangements", "time"]);
  const relations = new VirtualTable("Relations, views and rules", [
    { title: "Name", text: (row) => row.name },
    { title: "Kind", text: (row) => row.kind },
    { title: "Columns", text: (row) => row.columns },
    { title: "Tenant", text: (row) => row.tenant ?? "" },
    { title: "Rows", numeric: true, text: (row) => count(row.rows), value: (row) => row.rows },
    { title: "Bytes", numeric: true, text: (row) => size(row.bytes), value: (row) => row.bytes },
    { title: "Changes", numeric: true, text: (row) => rate(rates.of(row.name)), value: (row) => rates.of(row.name) },
    { title: "Queries", numeric: true, text: (row) => count(row.queries), value: (row) => row.queries },
    { title: "Text", text: (row) => row.text },
  ], { sort: 0 });
  const key = (/** @type {any} */ row) => `${row.dataflow}\n${row.name}`;
  const arrangements = new VirtualTable("Arrangements", [
    { title: "Name", text: (row) => row.name, link: (row) => `#overview/${encodeURIComponent(row.name)}` },
    { title: "Dataflow", text: (row) => row.dataflow, link: (row) => `#dataflows/${encodeURIComponent(row.dataflow)}` },
    { title: "Rows", numeric: true, text: (row) => count(row.rows), value: (row) => row.rows },
    { title: "Bytes", numeric: true, text: (row) => size(row.bytes), value: (row) => row.bytes },
    { title: "Changes", numeric: true, text: (row) => rate(arrangementRates.of(key(row))),
      value: (row) => arrangementRates.of(key(row)) },
    { title: "Since", numeric: true, text: (row) => count(row.since), value: (row) => row.since },
    { title: "Upper", numeric: true, text: (row) => count(row.upper), value: (row) => row.upper },
    { title: "Shared by", numeric: true, text: (row) => count(row.readers), value: (row) => row.readers },
    { title: "Pinned by", numeric: true, text: (row) => count(row.pins), value: (row) => row.pins },
  ], { sort: 3, descending: true });
  page.append(element("h2", { class: "hidden" }, title), facts.element, relations.element, arrangements.element);
  if (rest) page.append(readersOf(db, rest));

  /** @type {Record<string, any[]>} */
  const read = {};
  const wanted = ["relations", "queries", "dataflows", "arrangements"].map((table) => ({ table }));
  const poller = new Poller(db, () => wanted, (table, rows, error) => {
    read[table] = rows;
    if (table === "relations") {
      rates.read(rows.map((row) => [row.name, row.published_rows ?? 0]));
      relations.set(rows);
      facts.set("relations", rows.filter((row) => !["rule", "system relation"].includes(row.kind)).length);
      facts.set("rules", rows.filter((row) => row.kind === "rule").length);
      facts.set("tenants", new Set(rows.map((row) => row.tenant).filter(Boolean)).size);
    } else {
      facts.set(table, error ? null : rows.length);
    }
    if (table === "arrangements") {
      arrangementRates.read(rows.map((row) => [key(row), row.published_rows]));
      arrangements.set(rows);
      if (error) arrangements.note(error.what);
      facts.set("time", Math.max(-1, ...rows.map((row) => row.upper ?? -1)));
    }
  });
  return () => {
    poller.stop();
    relations.close();
    arrangements.close();
  };
}

/** Figures with their names. */
class Facts {
  /** @param {string[]} names */
  constructor(names) {
    this._values = new Map(names.map((name) => [name, element("dd", {}, "–")]));
    this.element = element("dl", { class: "facts" },
      ...names.map((name) => element("div", {}, element("dt", {}, name), this._values.get(name))));
  }

  /** @param {string} name @param {number | null} value */
  set(name, value) {
    const target = this._values.get(name);
    if (target) setText(target, value === null || value < 0 ? "–" : count(value));
  }
}

/** The dataflows that share an arrangement, and the handles that pin it.
 *  @param {import("../../../client/kpg.js").Connection} db @param {string} name @returns {HTMLElement} */
function readersOf(db, name) {
  const table = new VirtualTable(`Readers of ${name}`, [
    { title: "Role", text: (row) => row.role },
    { title: "Reader", text: (row) => row.reader },
    { title: "Since", numeric: true, text: (row) => count(row.since), value: (row) => row.since },
    { title: "Physical since", numeric: true, text: (row) => count(row.physical), value: (row) => row.physical },
  ]);
  table.element.classList.add("short");
  db.inspect("readers", name).then(
    ({ columns, rows }) => table.set(asObjects(columns, rows)),
    (error) => table.element.append(failure(error)),
  );
  table.element.scrollIntoView?.({ block: "nearest" });
  return table.element;
}
