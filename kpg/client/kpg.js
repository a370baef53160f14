// @ts-check
/**
 * A client of `kpg serve` for browsers, Node, Deno and Bun: one ES module without dependencies.
 *
 *     import { connect } from "./kpg.js";                       // or from a server: "http://localhost:8340/kpg.js"
 *     const db = await connect("ws://localhost:8340", { token: "..." });
 *     await db.insert("edge", [[1, 2], [2, 3]]);
 *     for await (const step of await db.interest("path")) console.log(step.upto, step.changes);
 *
 * If the connection is lost, the client connects again and continues each subscription after the last step that it has
 * received whole: no change is lost or comes twice. If the server no longer holds the subscription, the next step has
 * `reset`, and its rows are the whole answer. Requests whose reply was lost are sent again if that cannot change anything
 * twice: reads, and transactions with an `origin`. Others are rejected with `ReplyLost`.
 *
 * Values: int64 beyond 2^53 is a BigInt, binary a Uint8Array; decimals, dates and the like stay as the protocol writes
 * them, as in `{ decimal: "9.50" }`. A Date is sent as a timestamp.
 *
 * @typedef {null | boolean | number | bigint | string | Uint8Array | Date | Record<string, string>} Value
 * @typedef {Value[]} Row
 * @typedef {{ row: Row, time: number, diff: number }} Change
 * @typedef {{ name: string, type: string }} Column
 * @typedef {{ writer: string, batch: number }} Origin
 * @typedef {{ upto: number, changes: Change[], reset: boolean, failed: KpgError | null }} Step
 * @typedef {{ columns: Column[], rows: Row[], time: number | null, cut: boolean, tag: string | null }} Result
 * @typedef {{ relation: string, rows: Row[], diff?: number }} Block
 * @typedef {{ token?: string, timeout?: number, reconnect?: number, WebSocket?: any,
 *             onState?: (state: "open" | "lost" | "closed") => void }} ConnectOptions
 * @typedef {{ arguments?: Record<string, Value> | Record<string, Value>[], credit?: number, granularity?: number,
 *             sharing?: string, limits?: Record<string, number | null> }} InterestOptions
 * @typedef {{ language?: string, arguments?: Record<string, Value> | Record<string, Value>[], asOf?: number,
 *             limit?: number, limits?: Record<string, number | null> }} QueryOptions
 */

const VERSION = 1;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
const MAX_ATTEMPTS = 20; // of one request: one that ends the connection each time must not be sent forever
const FINAL_CODES = new Set([1002, 1003, 1007, 1008, 1009]); // close codes: the same would happen again

/** An error of the server, or of the connection. `kind` is the class that docs/errors.md lists. */
export class KpgError extends Error {
  /** @param {{ error: string, what: string, detail?: string, hint?: string, position?: any, sqlstate?: string }} failure */
  constructor(failure) {
    super([failure.what, failure.detail && `detail: ${failure.detail}`, failure.hint && `hint: ${failure.hint}`]
      .filter(Boolean).join("\n"));
    this.name = failure.error;
    this.kind = failure.error;
    this.what = failure.what;
    this.detail = failure.detail ?? null;
    this.hint = failure.hint ?? null;
    this.position = failure.position ?? null;
    this.sqlstate = failure.sqlstate ?? null;
  }
}

/** The connection was lost while a request waited for its reply; it may have taken effect. */
export class ReplyLost extends KpgError {
  constructor() {
    super({ error: "Unreachable", what: "the connection was lost before the reply",
      hint: "The request may have taken effect: look, and repeat." });
  }
}

/** @param {string} what @param {string} [detail] */
function unreachable(what, detail) {
  return new KpgError({ error: "Unreachable", what, detail });
}

// Values

/** @param {any} value @returns {any} */
export function encodeValue(value) {
  if (typeof value === "bigint") {
    const isExact = value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);
    return isExact ? Number(value) : { int: String(value) };
  }
  if (typeof value === "number" && !Number.isFinite(value)) return { float: String(value) };
  if (value instanceof Date) return { timestamp: value.toISOString() };
  if (value instanceof Uint8Array) {
    return { binary: btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")) };
  }
  return value;
}

/** @param {any} value @returns {any} */
export function decodeValue(value) {
  if (value === null || typeof value !== "object") return value;
  if ("int" in value) return BigInt(value.int);
  if ("float" in value) return Number(value.float);
  if ("binary" in value) return Uint8Array.from(atob(value.binary), (character) => character.charCodeAt(0));
  return value;
}

/** @param {Row[]} rows */
const encodeRows = (rows) => rows.map((row) => row.map(encodeValue));
/** @param {any[][]} rows */
const decodeRows = (rows) => rows.map((row) => row.map(decodeValue));

/** @param {any} given */
function encodeArguments(given) {
  if (given === undefined) return undefined;
  const list = Array.isArray(given) ? given : [given];
  return list.map((argument) => Object.fromEntries(Object.entries(argument).map(([k, v]) => [k, encodeValue(v)])));
}

/** A text that is the same for rows that are equal. @param {Row} row */
const rowKey = (row) => JSON.stringify(row.map(encodeValue));

// Subscriptions

/** An answer that a client follows: `for await (const step of subscription)`, `next()`, or the current `rows()`. */
export class Subscription {
  /** @param {Connection} connection @param {any} request @param {any} reply */
  constructor(connection, request, reply) {
    this.name = reply.name;
    /** @type {Column[]} */
    this.columns = reply.columns;
    /** The time below which the rows that were read are exact. */
    this.upto = 0;
    /** @type {KpgError | true | null} */
    this.ended = null;
    /** @type {KpgError | null} */
    this.failed = null;
    this._connection = connection;
    this._request = request; // as it was sent first
    this._interest = reply.interest;
    this._received = 0; // the last step that has arrived whole
    /** @type {Change[]} */
    this._partial = [];
    /** @type {Step[]} */
    this._steps = [];
    /** @type {Map<string, { row: Row, count: number }>} */
    this._counts = new Map();
    /** @type {(() => void)[]} */
    this._waiting = [];
  }

  /** Wait for the next step. @param {number} [timeout] milliseconds @returns {Promise<Step>} */
  async next(timeout) {
    const deadline = timeout === undefined ? Infinity : Date.now() + timeout;
    while (!this._steps.length) {
      if (this.ended) throw this.ended === true ? new KpgError({ error: "Closed", what: "it has ended" }) : this.ended;
      if (Date.now() >= deadline) throw new KpgError({ error: "TimeNotReached", what: "no change came in time" });
      await this._arrival(deadline);
    }
    return this._read();
  }

  /** @returns {AsyncGenerator<Step, void>} */
  async *[Symbol.asyncIterator]() {
    while (true) {
      try {
        yield await this.next();
      } catch (error) {
        if (error instanceof KpgError && error.kind === "Closed") return;
        throw error;
      }
    }
  }

  /** Return the current rows, each as often as its count; reads all steps that have arrived. @returns {Promise<Row[]>} */
  async rows() {
    if (!this.ended) await this._connection._ask(() => ({ type: "take", interest: this._interest }), true);
    while (this._steps.length) this._read();
    if (this.ended instanceof KpgError) throw this.ended;
    if (this.failed) throw this.failed;
    return [...this._counts.values()].flatMap(({ row, count }) => Array(Math.max(0, count)).fill(row));
  }

  /** End the interest; may be repeated. */
  async close() {
    if (this.ended) return;
    this.ended = true;
    this._connection._subscriptions.delete(this);
    this._wake();
    const request = () => ({ type: "uninterest", interest: this._interest });
    if (this._connection._isOpen) await this._connection._ask(request, false).catch(() => {});
  }

  /** @param {number} deadline */
  _arrival(deadline) {
    return new Promise((resolve) => {
      const timer = deadline === Infinity ? null : setTimeout(done, Math.max(0, deadline - Date.now()));
      function done() {
        if (timer !== null) clearTimeout(timer);
        resolve(undefined);
      }
      this._waiting.push(done);
    });
  }

  _wake() {
    const waiting = this._waiting;
    this._waiting = [];
    for (const done of waiting) done();
  }

  /** @param {any} message */
  _receive(message) {
    if (message.step && message.step <= this._received) return; // received before, over a connection that was lost
    decodeRows(message.rows).forEach((row, index) => {
      this._partial.push({ row, time: message.times[index], diff: message.diffs[index] });
    });
    if (message.more) return;
    const failed = message.failed ? new KpgError(message.failed) : null;
    this._steps.push({ upto: message.upto, changes: this._partial, reset: message.reset === true, failed });
    this._partial = [];
    this._received = message.step ?? 0;
    this._wake();
  }

  /** @param {KpgError} reason */
  _end(reason) {
    this.ended = reason;
    this._wake();
  }

  _read() {
    const step = /** @type {Step} */ (this._steps.shift());
    if (step.reset) this._counts.clear();
    for (const { row, diff } of step.changes) {
      const key = rowKey(row);
      const count = (this._counts.get(key)?.count ?? 0) + diff;
      if (count) this._counts.set(key, { row, count });
      else this._counts.delete(key);
    }
    this.upto = step.upto;
    this.failed = step.failed;
    // Without a connection there is nothing to acknowledge: the next one says how many steps are unread.
    const { _isOpen, _readMeanwhile } = this._connection;
    if (_isOpen) this._connection._send({ type: "ack", interest: this._interest, step: this._received });
    else _readMeanwhile.set(this, (_readMeanwhile.get(this) ?? 0) + 1);
    return step;
  }

  /** The request that continues after the last step received. */
  _resumption() {
    this._partial = [];
    const credit = Math.max(0, this._request.credit - this._steps.length);
    return { ...this._request, credit, step: this._received };
  }

  /** @param {any} reply */
  _resume(reply) {
    this._interest = reply.interest;
    if (!reply.resumed) this._received = 0; // a reset follows
  }
}

// Connections

/** A connection to a server, made by `connect`. */
export class Connection {
  /** @param {string} url @param {ConnectOptions} options */
  constructor(url, options) {
    this.url = url;
    /** @type {any} */
    this.welcome = null;
    this._options = { timeout: 10_000, reconnect: 60_000, ...options };
    this._WebSocket = options.WebSocket ?? /** @type {any} */ (globalThis).WebSocket;
    if (!this._WebSocket) {
      throw unreachable("there is no WebSocket here", "Give { WebSocket }, for example of the package ws.");
    }
    this._isOpen = false;
    /** @type {KpgError | null} */
    this._end = null;
    this._inTransaction = false;
    this._transactionLost = false;
    this._number = 0;
    /** @type {Map<number, { resolve: (replies: any[]) => void, reject: (error: Error) => void, replies: any[],
     *                       begin?: (reply: any) => void }>} */
    this._pending = new Map();
    /** @type {Set<Subscription>} */
    this._subscriptions = new Set();
    /** @type {Map<Subscription, number>} the steps read while there was no connection */
    this._readMeanwhile = new Map();
    /** @type {(() => void)[]} */
    this._whenOpen = [];
  }

  // Requests

  /** The last complete time. @returns {Promise<number | null>} */
  async ping() {
    return (await this._ask({ type: "ping" }, true)).at(-1).time ?? null;
  }

  /** @param {string} name @param {Record<string, string>} columns names and types
   *  @param {{ semantics?: string, key?: string[], order?: string }} [options] */
  async createRelation(name, columns, options = {}) {
    const specs = Object.entries(columns).map(([column, type]) => ({ name: column, type }));
    await this._ask({ type: "create_relation", name, columns: specs, ...options }, false);
  }

  /** Drop a relation with its rows. @param {string} name */
  async dropRelation(name) {
    await this._ask({ type: "drop_relation", name }, false);
  }

  /** Apply changes at one time, all or none; return the time. With an origin, at most once.
   *  @param {Block[]} changes @param {{ origin?: Origin, at?: number }} [options] @returns {Promise<number>} */
  async transact(changes, options = {}) {
    const blocks = changes.map(({ relation, rows, diff }) => ({ relation, rows: encodeRows(rows), diff: diff ?? 1 }));
    const request = { type: "transact", changes: blocks, ...options };
    return (await this._ask(request, options.origin !== undefined)).at(-1).time;
  }

  /** @param {string} relation @param {Row[]} rows @param {{ origin?: Origin }} [options] @returns {Promise<number>} */
  insert(relation, rows, options = {}) {
    return this.transact([{ relation, rows }], options);
  }

  /** @param {string} relation @param {Row[]} rows @param {{ origin?: Origin }} [options] @returns {Promise<number>} */
  remove(relation, rows, options = {}) {
    return this.transact([{ relation, rows, diff: -1 }], options);
  }

  /** Store rules. @param {string} text @param {{ language?: string, name?: string }} [options] @returns {Promise<string[]>} */
  async register(text, options = {}) {
    return (await this._ask({ type: "register", text, ...options }, false)).at(-1).names;
  }

  /** @param {string} name */
  async unregister(name) {
    await this._ask({ type: "unregister", name }, false);
  }

  /** The rows of a name, or of a text. @param {string} text @param {QueryOptions} [options] @returns {Promise<Result>} */
  async query(text, options = {}) {
    const { asOf, arguments: given, ...rest } = options;
    const request = { type: "query", text, arguments: encodeArguments(given), as_of: asOf, ...rest };
    return toResult(await this._ask(request, true));
  }

  /** Execute SQL; `parameters` are the values of `:name`, or a list for `$1`, `$2`, ...
   *  @param {string} text @param {Record<string, Value> | Value[]} [parameters] @returns {Promise<Result>} */
  async sql(text, parameters = {}) {
    const named = Array.isArray(parameters)
      ? Object.fromEntries(parameters.map((value, index) => [index + 1, value]))
      : parameters;
    const [values] = Object.keys(named).length ? /** @type {any[]} */ (encodeArguments(named)) : [undefined];
    if (this._transactionLost) {
      this._transactionLost = false;
      throw unreachable("the connection was lost, and the server rolled the transaction back");
    }
    try {
      return toResult(await this._ask({ type: "sql", text, parameters: values }, false));
    } catch (error) {
      if (error instanceof ReplyLost) this._transactionLost = false; // the caller knows
      throw error;
    }
  }

  /** @param {string} name @returns {Promise<string>} */
  async explain(name) {
    return (await this._ask({ type: "explain", name }, true)).at(-1).text;
  }

  /** The state of the server as a table. @param {string} table @param {string} [name] @returns {Promise<Result>} */
  async inspect(table, name) {
    return toResult(await this._ask({ type: "inspect", table, name }, true));
  }

  /** Stop the query of an interest, or the requests that a session waits for; for admins.
   *  @param {{ number?: number, session?: number }} target */
  async stop(target) {
    await this._ask({ type: "stop", ...target }, false);
  }

  /** @returns {Promise<{ name: string, role: string, columns: Column[] }[]>} */
  async catalog() {
    return (await this._ask({ type: "catalog" }, true)).at(-1).relations;
  }

  /** Follow a rule or relation. @param {string} name @param {InterestOptions} [options] @returns {Promise<Subscription>} */
  async interest(name, options = {}) {
    const { arguments: given, credit = 8, ...rest } = options;
    const key = this._options.reconnect > 0 ? randomKey() : undefined;
    const request = { type: "interest", name, arguments: encodeArguments(given), credit, key, ...rest };
    /** @type {Subscription | undefined} */
    let subscription;
    await this._ask(request, key !== undefined, (reply) => { // its changes may follow immediately
      subscription = new Subscription(this, request, reply);
      this._subscriptions.add(subscription);
    });
    return /** @type {Subscription} */ (/** @type {unknown} */ (subscription));
  }

  /** Close the connection and end its interests; may be repeated. */
  close() {
    this._stop(unreachable(`the connection to ${this.url} is closed`));
    this._socket?.close(1000);
  }

  // Sending

  /** Send a request and return its replies. @param {any} request or a function that makes it, anew for each attempt
   *  @param {boolean} repeatable @param {(reply: any) => void} [begin] called with the reply as it arrives
   *  @returns {Promise<any[]>} */
  async _ask(request, repeatable, begin) {
    for (let attempt = 1; ; attempt++) {
      while (!this._isOpen && !this._end) await new Promise((resolve) => this._whenOpen.push(() => resolve(undefined)));
      if (this._end) throw this._end;
      try {
        return await this._exchange(typeof request === "function" ? request() : request, begin);
      } catch (error) {
        if (!(error instanceof ReplyLost) || !repeatable || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** @param {any} request @param {(reply: any) => void} [begin] @returns {Promise<any[]>} */
  _exchange(request, begin) {
    const id = this._number++;
    return new Promise((resolve, reject) => {
      this._pending.set(id, { resolve, reject, replies: [], begin });
      this._send({ ...request, id });
    });
  }

  /** @param {any} message */
  _send(message) {
    // A socket that is closing drops what it is given; its `close` event then rejects the request.
    if (this._socket.readyState === 1) this._socket.send(JSON.stringify(message));
  }

  /** @param {string} text */
  _receive(text) {
    const message = JSON.parse(text);
    if (message.type === "changes" || message.type === "ended") {
      for (const subscription of this._subscriptions) {
        if (subscription._interest !== message.interest) continue;
        if (message.type === "changes") subscription._receive(message);
        else {
          this._subscriptions.delete(subscription);
          subscription._end(new KpgError(message.reason ?? { error: "Closed", what: "the interest has ended" }));
        }
      }
      return;
    }
    const pending = this._pending.get(message.id);
    if (!pending) return;
    pending.replies.push(message);
    if (message.type === "rows" && message.more) return;
    this._pending.delete(message.id);
    if (message.type === "rows" && message.tag !== undefined) this._inTransaction = message.in_transaction === true;
    if (message.type === "error") pending.reject(new KpgError(message.failure));
    else {
      pending.begin?.(message);
      pending.resolve(pending.replies);
    }
  }

  // Connecting

  /** Open a socket and a session on it, and continue the subscriptions. @returns {Promise<void>} */
  async _connect() {
    const socket = new this._WebSocket(this.url);
    this._socket = socket;
    /** @type {any} */
    let timer;
    /** @type {Promise<void>} */
    const lost = new Promise((_, reject) => {
      socket.onclose = (/** @type {any} */ event) => {
        this._lose(); // requests of the handshake, too
        const error = unreachable(`cannot reach ${this.url}`, event.reason || `The connection ended (${event.code}).`);
        reject(Object.assign(error, { isFinal: FINAL_CODES.has(event.code) }));
      };
      // Some sockets say nothing when they end in the middle of their handshake.
      timer = setTimeout(() => socket.onclose({ reason: "It did not answer in time." }), this._options.timeout);
    });
    lost.catch(() => {});
    socket.onmessage = (/** @type {any} */ event) => this._receive(event.data);
    try {
      await Promise.race([lost, new Promise((resolve) => { socket.onopen = resolve; })]);
      await Promise.race([lost, this._openSession()]);
    } catch (error) {
      socket.onclose = socket.onmessage = socket.onopen = null;
      if (socket.readyState < 2) socket.close();
      throw error instanceof ReplyLost ? unreachable(`cannot reach ${this.url}`) : error;
    } finally {
      clearTimeout(timer);
    }
    this._isOpen = true;
    this._options.onState?.("open");
    for (const [subscription, credit] of this._readMeanwhile) { // after the request that said how many were unread
      const { _interest: interest, _received: step } = subscription;
      if (!subscription.ended) this._send({ type: "ack", interest, credit, step });
    }
    this._readMeanwhile.clear();
    socket.onclose = (/** @type {any} */ event) => {
      this._lose();
      if (this._end) return;
      this._options.onState?.("lost");
      const error = unreachable(`cannot reach ${this.url}`, event.reason || `The connection ended (${event.code}).`);
      if (this._options.reconnect <= 0 || FINAL_CODES.has(event.code)) this._stop(error);
      else this._reconnect();
    };
    if (socket.readyState > 1) socket.onclose({ code: 1006, reason: "" });
    this._wake();
  }

  async _openSession() {
    const hello = { type: "hello", version: VERSION, token: this._options.token };
    this.welcome = (await this._exchange(hello)).at(-1);
    for (const subscription of [...this._subscriptions]) {
      this._readMeanwhile.delete(subscription);
      try {
        await this._exchange(subscription._resumption(), (reply) => subscription._resume(reply));
      } catch (error) {
        if (!(error instanceof KpgError) || error instanceof ReplyLost) throw error;
        this._subscriptions.delete(subscription);
        subscription._end(error);
      }
    }
  }

  async _reconnect() {
    const end = Date.now() + this._options.reconnect;
    for (let pause = FIRST_PAUSE_MS; !this._end; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      try {
        return await this._connect();
      } catch (error) {
        const failure = /** @type {any} */ (error);
        if (failure.kind !== "Unreachable" || failure.isFinal || Date.now() >= end) return this._stop(failure);
      }
      await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random() / 2)));
    }
  }

  /** The connection is lost: no request gets its reply any more. */
  _lose() {
    this._isOpen = false;
    this._transactionLost ||= this._inTransaction;
    this._inTransaction = false;
    const pending = [...this._pending.values()];
    this._pending.clear();
    for (const { reject } of pending) reject(new ReplyLost());
  }

  /** End for good. @param {KpgError} reason */
  _stop(reason) {
    if (!this._end) {
      this._end = reason;
      this._options.onState?.("closed");
    }
    for (const subscription of this._subscriptions) subscription._end(this._end);
    this._subscriptions.clear();
    this._wake();
  }

  _wake() {
    const waiting = this._whenOpen;
    this._whenOpen = [];
    for (const resume of waiting) resume();
  }
}

/** A secret of an interest; `crypto.randomUUID` exists on pages over TLS only. */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {any[]} pages @returns {Result} */
function toResult(pages) {
  const last = pages[pages.length - 1];
  return { columns: last.columns, rows: pages.flatMap((page) => decodeRows(page.rows)), time: last.time ?? null,
    cut: last.cut === true, tag: last.tag ?? null };
}

/** Connect to a server. `timeout` and `reconnect` are milliseconds; with `reconnect: 0` a lost connection ends.
 *  @param {string} url ws://host:port, or wss:// @param {ConnectOptions} [options] @returns {Promise<Connection>} */
export async function connect(url, options = {}) {
  const connection = new Connection(url, options);
  await connection._connect();
  return connection;
}
