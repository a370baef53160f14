// @ts-check
/** The rows of a result: as they were once, or as they change, with those that come and go marked. */
import { count, shown } from "./formats.js";
import { LiveRows } from "./live_rows.js";
import { VirtualTable } from "./virtual_table.js";
import { element } from "./dom.js";

const EXPIRE_MS = 250; // between two looks for old marks
const NUMBERS = /^(u?int|float|decimal|numeric)/; // types of columns whose values stand at the right
const SIGNS = { added: "+", removed: "−", "": "" };

export class ResultView {
  /** @param {string} caption */
  constructor(caption) {
    this._caption = caption;
    this.element = element("div", { class: "tall" });
    /** @type {VirtualTable | null} */
    this._table = null;
    this._columns = "";
    this._live = new LiveRows();
    /** @type {any} */
    this._timer = null;
  }

  /** Show rows as they were once. @param {import("../../client/kpg.js").Result} result */
  show({ columns, rows, time, cut }) {
    const table = this._tableOf(columns, false);
    table.set(rows.map((row) => ({ row, mark: "" })));
    table.note(`${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}${cut ? ", and more" : ""} as of time ${time}`);
  }

  /** Apply changes. @param {import("./following.js").Followed} followed */
  apply({ columns, changes, isFirst, upto }) {
    if (isFirst) this._live.reset();
    this._live.apply(changes, isFirst);
    this._upto = upto ?? this._upto;
    this._refresh(this._tableOf(columns, true));
    this._timer ??= setInterval(() => this._expire(), EXPIRE_MS);
  }

  close() {
    clearInterval(this._timer);
    this._table?.close();
  }

  _expire() {
    const marksLeft = this._live.expire();
    if (this._table && (marksLeft || this._hadMarks)) this._refresh(this._table);
    this._hadMarks = marksLeft;
  }

  /** @param {VirtualTable} table */
  _refresh(table) {
    const time = this._upto ? ` before time ${this._upto}` : "";
    table.set(this._live.all());
    table.note(`${count(this._live.size)} rows${time}, ${count(this._live.changes)} changes seen`);
  }

  /** @param {{ name: string, type: string }[]} columns @param {boolean} isLive */
  _tableOf(columns, isLive) {
    const names = JSON.stringify(columns.map(({ name }) => name));
    if (this._table && names === this._columns) return this._table;
    this._columns = names;
    this._table?.close();
    const marks = { title: "±", text: (/** @type {any} */ { mark }) => /** @type {any} */ (SIGNS)[mark] };
    const cells = columns.map(({ name, type }, index) => ({
      title: name, right: NUMBERS.test(type), text: (/** @type {any} */ { row }) => shown(row[index]),
      value: (/** @type {any} */ { row }) => sortedBy(row[index]),
    }));
    this._table = new VirtualTable(this._caption, isLive ? [marks, ...cells] : cells, { rowClass: ({ mark }) => mark });
    this.element.replaceChildren(this._table.element);
    return this._table;
  }
}

/** What a value is sorted by: decimals by their number, and other objects by their text. @param {any} value */
function sortedBy(value) {
  if (value === null || typeof value !== "object") return value;
  return "decimal" in value ? Number(value.decimal) : shown(value);
}
