// @ts-check
/**
 * Follows an answer. Rules: an interest in the last rule of a text, which is registered meanwhile. SQL: a cursor of
 * SUBSCRIBE, read several times a second. Both continue after a lost connection.
 *
 * @typedef {{ columns: { name: string, type: string }[], changes: { row: any[], diff: number }[], isFirst: boolean,
 *             upto: number | null }} Followed
 * @typedef {(followed: Followed) => void} Receive
 */

const FETCH_MS = 150; // between two readings of a cursor
let cursors = 0;

/** Follow the last rule of a text, or a name. Return a function that ends it.
 *  @param {import("../../client/kpg.js").Connection} db @param {string} text @param {Receive} receive
 *  @param {(error: any) => void} fail @returns {Promise<() => Promise<void>>} */
export async function followRules(db, text, receive, fail) {
  const isName = isRelationName(text);
  const before = new Set((await db.catalog()).map(({ name }) => name));
  const names = isName ? [text.trim()] : await db.register(text);
  const name = names.at(-1);
  if (name === undefined) throw Object.assign(new Error(), { kind: "InputError", what: "the text has no rule to follow" });
  const own = !isName && !before.has(name);
  const forget = async () => { if (own) await db.unregister(name).catch(() => {}); };
  /** @type {any} */
  let subscription;
  try {
    subscription = await db.interest(name);
  } catch (error) {
    await forget();
    throw error;
  }
  (async () => {
    let isFirst = true;
    try {
      for await (const { changes, reset, failed, upto } of subscription) {
        if (failed) fail(failed);
        else receive({ columns: subscription.columns, changes, isFirst: isFirst || reset, upto });
        isFirst = false;
      }
    } catch (error) {
      fail(error);
    }
  })();
  return async () => {
    await subscription.close().catch(() => {});
    await forget();
  };
}

/** Follow a query of SQL. Return a function that ends it.
 *  @param {import("../../client/kpg.js").Connection} db @param {string} text @param {Receive} receive
 *  @param {(error: any) => void} fail @returns {Promise<() => Promise<void>>} */
export async function followSql(db, text, receive, fail) {
  const query = text.trim().replace(/;\s*$/, "");
  const cursor = `kpg_console_${Date.now() % 1e6}_${cursors++}`;
  const declare = () => db.sql(`DECLARE ${cursor} CURSOR FOR SUBSCRIBE (\n${query}\n)`);
  try {
    await declare();
  } catch (error) {
    const { position } = /** @type {any} */ (error);
    if (position?.line) position.line -= 1; // the line before the query
    throw error;
  }
  let isEnded = false;
  let isFirst = true;
  (async () => {
    while (!isEnded) {
      try {
        const { columns, rows } = await db.sql(`FETCH ALL FROM ${cursor}`);
        if (isEnded) break;
        if (rows.length || isFirst) {
          const changes = rows.map(([, diff, ...row]) => ({ row, diff: Number(diff) }));
          receive({ columns: columns.slice(2), changes, isFirst, upto: rows.length ? Number(rows.at(-1)?.[0]) + 1 : null });
          isFirst = false;
        }
      } catch (error) {
        const { kind } = /** @type {any} */ (error);
        if (isEnded || kind === "Closed") break;
        if (kind !== "Unreachable" && kind !== "UndefinedName" && kind !== "ReplyLost") {
          fail(error);
          break;
        }
        isFirst = true; // the cursor has ended with its connection
        await declare().catch((again) => { if (again.kind !== "Unreachable") isEnded = true; });
      }
      await new Promise((resolve) => setTimeout(resolve, FETCH_MS));
    }
  })();
  return async () => {
    isEnded = true;
    await db.sql(`CLOSE ${cursor}`).catch(() => {});
  };
}

/** Whether a text is the name of a relation, and no rule. @param {string} text */
export function isRelationName(text) {
  return /^\s*:?[A-Za-z_][\w./-]*\s*$/.test(text);
}
