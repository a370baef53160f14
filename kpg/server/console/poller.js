// @ts-check
/**
 * Reads tables of a server again and again, about once a second, while the page is visible.
 *
 * Between two readings it waits at least REST_FACTOR times as long as the last one took, so a console takes a small share
 * of a busy server. A table that the token may not see is asked for once.
 *
 * @typedef {Record<string, any>} TableRow
 * @typedef {{ table: string, name?: string }} Wanted
 */

export const INTERVAL_MS = 1_000;
const REST_FACTOR = 10;

export class Poller {
  /** @param {import("../../client/kpg.js").Connection} db @param {() => Wanted[]} wanted
   *  @param {(table: string, rows: TableRow[], error: any) => void} receive called for each table of a reading
   *  @param {() => void} [done] called after each reading */
  constructor(db, wanted, receive, done = () => {}) {
    this._db = db;
    this._wanted = wanted;
    this._receive = receive;
    this._done = done;
    this._isStopped = false;
    /** @type {Set<string>} */
    this._refused = new Set();
    /** @type {() => void} */
    this._wake = () => {};
    this._onVisible = () => this._wake();
    document.addEventListener("visibilitychange", this._onVisible);
    this._run();
  }

  stop() {
    this._isStopped = true;
    document.removeEventListener("visibilitychange", this._onVisible);
    this._wake();
  }

  /** Read now. */
  now() {
    this._wake();
  }

  async _run() {
    while (!this._isStopped) {
      const began = performance.now();
      if (!document.hidden) await this._read();
      const elapsed = performance.now() - began;
      await this._pause(Math.max(INTERVAL_MS, REST_FACTOR * elapsed));
    }
  }

  async _read() {
    await Promise.all(this._wanted().filter(({ table }) => !this._refused.has(table)).map(async ({ table, name }) => {
      try {
        const { columns, rows } = await this._db.inspect(table, name);
        if (!this._isStopped) this._receive(table, asObjects(columns, rows), null);
      } catch (error) {
        if (this._isStopped) return;
        if (/** @type {any} */ (error).kind === "NotAuthorised") this._refused.add(table);
        this._receive(table, [], error);
      }
    }));
    if (!this._isStopped) this._done();
  }

  /** @param {number} milliseconds @returns {Promise<void>} */
  _pause(milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this._wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** @param {{ name: string }[]} columns @param {any[][]} rows @returns {TableRow[]} */
export function asObjects(columns, rows) {
  const names = columns.map(({ name }) => name);
  return rows.map((row) => {
    /** @type {TableRow} */
    const made = {};
    for (let index = 0; index < names.length; index++) made[names[index]] = row[index];
    return made;
  });
}
