// @ts-check
/**
 * The rows of an answer that changes: those that came and went in the last seconds are marked.
 *
 * @typedef {{ row: any[], count: number, mark: "" | "added" | "removed", at: number }} LiveRow
 */

export const MARK_MS = 2_000; // for which a row that came or went is marked

export class LiveRows {
  constructor() {
    /** @type {Map<string, LiveRow>} */
    this._rows = new Map();
    this.changes = 0;
  }

  /** Forget all rows: those that follow are the whole answer. */
  reset() {
    this._rows.clear();
  }

  /** Apply changes. The rows of a first answer are not marked.
   *  @param {{ row: any[], diff: number }[]} changes @param {boolean} isFirst @param {number} [now] */
  apply(changes, isFirst, now = performance.now()) {
    this.changes += isFirst ? 0 : changes.length;
    for (const { row, diff } of changes) {
      const key = JSON.stringify(row, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
      const known = this._rows.get(key);
      const count = (known?.count ?? 0) + diff;
      if (isFirst && count === 0) this._rows.delete(key);
      else this._rows.set(key, { row, count, mark: isFirst ? "" : count > 0 ? "added" : "removed", at: now });
    }
  }

  /** Remove old marks, and the rows that are gone. Return whether marks are left. @param {number} [now] */
  expire(now = performance.now()) {
    let left = false;
    for (const [key, row] of this._rows) {
      if (!row.mark) continue;
      if (now - row.at < MARK_MS) left = true;
      else if (row.count <= 0) this._rows.delete(key);
      else row.mark = "";
    }
    return left;
  }

  /** All rows, and those that went a moment ago. @returns {LiveRow[]} */
  all() {
    return [...this._rows.values()];
  }

  /** The number of rows of the answer. */
  get size() {
    let size = 0;
    for (const { count } of this._rows.values()) size += count > 0 ? 1 : 0;
    return size;
  }
}
