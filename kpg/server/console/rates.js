// @ts-check
/** Rates of counters: the difference of two readings, over the time between them. */

export class Rates {
  constructor() {
    /** @type {Map<string, number>} */
    this._last = new Map();
    this._at = 0;
    /** @type {Map<string, number>} */
    this._rates = new Map();
  }

  /** Take a reading of all counters. @param {Iterable<[string, number]>} counters @param {number} [now] in milliseconds */
  read(counters, now = performance.now()) {
    const current = new Map(counters);
    const seconds = (now - this._at) / 1000;
    this._rates = new Map();
    if (this._at && seconds > 0) {
      for (const [name, value] of current) {
        const before = this._last.get(name);
        if (before !== undefined) this._rates.set(name, Math.max(0, value - before) / seconds);
      }
    }
    this._last = current;
    this._at = now;
  }

  /** The rate of a counter in units a second; null before its second reading. @param {string} name */
  of(name) {
    return this._rates.get(name) ?? null;
  }
}
