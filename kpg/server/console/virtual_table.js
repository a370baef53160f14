// @ts-check
/**
 * A table that draws only the rows in view: its cost does not depend on the number of rows.
 *
 * It is a <table> for readers of any kind: rows have their number (aria-rowindex), headers are buttons that sort, and the
 * frame around it scrolls by keyboard. A new set of rows is sorted and filtered when it is drawn, once a frame at most.
 *
 * @typedef {Record<string, any>} TableRow
 * @typedef {{ title: string, text: (row: TableRow) => string, value?: (row: TableRow) => any, numeric?: boolean,
 *             right?: boolean, link?: (row: TableRow) => string, act?: (row: TableRow) => void,
 *             can?: (row: TableRow) => boolean, label?: (row: TableRow) => string }} TableColumn
 *   text: what a cell shows; value: what it is sorted by; right: a number that filters search as text;
 *   link: the address it leads to; act: what its button does
 */
import { element, setText } from "./dom.js";
import { beforeNextFrame } from "./frames.js";

const ROW_PIXELS = 28; // as in style.css
const EXTRA_ROWS = 4; // above and below those in view, so that scrolling shows no gap

export class VirtualTable {
  /** @param {string} caption @param {TableColumn[]} columns
   *  @param {{ sort?: number, descending?: boolean, filter?: boolean, rowClass?: (row: TableRow) => string }} [options] */
  constructor(caption, columns, options = {}) {
    this._columns = columns;
    this._sort = options.sort ?? -1;
    this._descending = options.descending ?? false;
    this._rowClass = options.rowClass ?? (() => "");
    /** @type {TableRow[]} */
    this._rows = [];
    /** @type {TableRow[]} */
    this._shown = [];
    this._filter = "";
    this._isStale = false;
    this._draw = () => this._render();
    /** @type {any[]} */
    this._pool = [];
    this._headers = columns.map((column, index) => this._header(column, index));
    this._above = element("tr", { class: "space", "aria-hidden": "true" }, element("td", { colspan: columns.length }));
    this._below = element("tr", { class: "space", "aria-hidden": "true" }, element("td", { colspan: columns.length }));
    this._body = element("tbody", {}, this._above, this._below);
    this._table = element("table", {}, element("caption", { class: "hidden" }, caption),
      element("thead", {}, element("tr", { "aria-rowindex": 1 }, ...this._headers)), this._body);
    this._frame = element("div", { class: "frame", tabindex: 0, role: "group", "aria-label": caption,
      onscroll: () => beforeNextFrame(this._draw) }, this._table);
    this._note = element("p", { class: "note" });
    const search = element("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${caption}`,
      oninput: () => this._setFilter(search.value) });
    this.element = element("section", { class: "table", "aria-label": caption },
      element("div", { class: "bar" }, element("h2", {}, caption), this._note, options.filter !== false && search),
      this._frame);
    this._resized = new ResizeObserver(this._draw);
    this._resized.observe(this._frame);
  }

  /** Show other rows. @param {TableRow[]} rows */
  set(rows) {
    this._rows = rows;
    this._isStale = true;
    beforeNextFrame(this._draw);
  }

  /** Show a text in place of the number of rows. @param {string} text */
  note(text) {
    this._fixedNote = text;
    this._isStale = true;
    beforeNextFrame(this._draw);
  }

  /** Stop watching the size of the page. */
  close() {
    this._resized.disconnect();
  }

  /** @param {TableColumn} column @param {number} index */
  _header(column, index) {
    const button = element("button", { type: "button", onclick: () => this._sortBy(index) }, column.title);
    return element("th", { scope: "col", class: alignment(column) }, column.act ? column.title : button);
  }

  /** @param {number} index */
  _sortBy(index) {
    this._descending = this._sort === index ? !this._descending : alignment(this._columns[index]) === "number";
    this._sort = index;
    this._isStale = true;
    beforeNextFrame(this._draw);
  }

  /** @param {string} text */
  _setFilter(text) {
    this._filter = text.toLowerCase();
    this._isStale = true;
    beforeNextFrame(this._draw);
  }

  _arrange() {
    this._isStale = false;
    const words = this._filter;
    const texts = this._columns.filter((column) => !column.numeric && !column.act);
    let rows = this._rows;
    if (words) rows = rows.filter((row) => texts.some((column) => column.text(row).toLowerCase().includes(words)));
    if (this._sort >= 0) {
      const column = this._columns[this._sort];
      const value = column.value ?? column.text;
      const sign = this._descending ? -1 : 1;
      rows = rows.map((row) => /** @type {[any, TableRow]} */ ([value(row), row]))
        .sort(([left], [right]) => sign * compared(left, right)).map(([, row]) => row);
    }
    this._shown = rows;
    this._headers.forEach((header, index) => {
      if (index === this._sort) header.setAttribute("aria-sort", this._descending ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    const total = this._rows.length;
    const many = rows.length === total ? `${total}` : `${rows.length} of ${total}`;
    setText(this._note, this._fixedNote ?? `${many} ${total === 1 ? "row" : "rows"}`);
    this._table.setAttribute("aria-rowcount", String(rows.length + 1));
  }

  _render() {
    if (this._isStale) this._arrange();
    const height = this._frame.clientHeight;
    const first = Math.max(0, Math.floor(this._frame.scrollTop / ROW_PIXELS) - EXTRA_ROWS);
    const visible = Math.ceil(height / ROW_PIXELS) + 2 * EXTRA_ROWS;
    const last = Math.min(this._shown.length, first + visible);
    while (this._pool.length < last - first) {
      const line = this._line();
      this._pool.push(line);
      this._body.insertBefore(line.row, this._below);
    }
    this._pool.forEach((line, index) => {
      const row = index < last - first ? this._shown[first + index] : undefined;
      if (line.row.hidden !== (row === undefined)) line.row.hidden = row === undefined;
      if (row !== undefined) this._fill(line, row, first + index);
    });
    setHeight(this._above, first * ROW_PIXELS);
    setHeight(this._below, Math.max(0, this._shown.length - last) * ROW_PIXELS);
  }

  /** A row of elements, to be filled with the rows that come into view. */
  _line() {
    /** @type {any} */
    const line = { data: null };
    line.cells = this._columns.map((column) => {
      const attributes = { class: alignment(column) };
      if (column.act) {
        const act = column.act;
        line.button = element("button", { type: "button", onclick: () => act(line.data) });
        return { cell: element("td", attributes, line.button), target: line.button };
      }
      if (column.link) {
        const anchor = element("a", {});
        return { cell: element("td", attributes, anchor), target: anchor };
      }
      const cell = element("td", attributes);
      return { cell, target: cell };
    });
    line.row = element("tr", {}, ...line.cells.map((/** @type {any} */ { cell }) => cell));
    return line;
  }

  /** @param {any} line @param {TableRow} row @param {number} index */
  _fill(line, row, index) {
    line.data = row;
    if (line.index !== index) {
      line.index = index;
      line.row.setAttribute("aria-rowindex", String(index + 2)); // the header is row 1
    }
    const name = this._rowClass(row);
    if (line.row.className !== name) line.row.className = name;
    this._columns.forEach((column, at) => {
      const { cell, target } = line.cells[at];
      const text = column.text(row);
      setText(target, text);
      if (cell.title !== text) cell.title = text;
      if (column.link) {
        const address = column.link(row);
        if (target.getAttribute("href") !== address) target.setAttribute("href", address);
      }
      if (column.act) {
        target.hidden = column.can ? !column.can(row) : false;
        if (column.label) target.setAttribute("aria-label", column.label(row));
      }
    });
  }
}

/** The class of the cells of a column. @param {TableColumn} column */
function alignment({ numeric, right }) {
  return numeric || right ? "number" : "";
}

/** @param {any} left @param {any} right */
function compared(left, right) {
  if (left === right) return 0;
  if (left === null || left === undefined) return -1;
  if (right === null || right === undefined) return 1;
  return left < right ? -1 : 1;
}

/** @param {any} row @param {number} pixels */
function setHeight(row, pixels) {
  const height = `${pixels}px`;
  if (row.style.height !== height) row.style.height = height;
  if (row.hidden !== (pixels === 0)) row.hidden = pixels === 0;
}
