// @ts-check
/** An editor for SQL and Datalog: run once, follow the answer as it changes, or see how it is computed. */
import { element } from "../dom.js";
import { failure } from "../failures.js";
import { followRules, followSql, isRelationName } from "../following.js";
import { GraphView } from "../graph_view.js";
import { planGraph } from "../plan_graph.js";
import { ResultView } from "../result_view.js";
import { TextEditor } from "../text_editor.js";
import { Vocabulary } from "../vocabulary.js";

export const title = "Editor";
const MAX_ROWS = 10_000; // of a result that is asked for once
const SLOW_MS = 300; // after which the page says that a query runs
const EXAMPLES = {
  sql: "SELECT * FROM information_schema.tables LIMIT 10",
  datalog: "needs(x, y) :- sys_reads(x, y, _).\nneeds(x, z) :- needs(x, y), sys_reads(y, z, _).",
};
/** The texts of this tab by language, kept while other pages are shown. @type {Record<string, string>} */
const texts = { ...EXAMPLES };
let language = "sql";

/** @type {import("../main.js").ConsolePage["show"]} */
export function show(page, { db }) {
  const vocabulary = new Vocabulary();
  const editor = new TextEditor("Query", (start, most) => vocabulary.matches(start, language, most), () => run());
  const messages = element("div", {});
  const output = element("div", {});
  const languages = element("select", { "aria-label": "Language", onchange: () => choose(languages.value) },
    element("option", { value: "sql" }, "SQL"), element("option", { value: "datalog" }, "Datalog"));
  const button = (/** @type {string} */ label, /** @type {() => void} */ act, /** @type {string} */ keys = "") =>
    element("button", { type: "button", onclick: act, title: keys, class: keys && "main" }, label);
  const stopButton = button("Stop", () => stop());
  stopButton.disabled = true;
  page.append(element("h2", { class: "hidden" }, title), element("div", { class: "editor" }, editor.element,
    element("div", { class: "bar" }, languages, button("Run", () => run(), "Ctrl+Enter"), button("Follow", () => follow()),
      stopButton, button("Explain", () => explain()))), messages, output);

  /** @type {ResultView | null} */
  let result = null;
  /** @type {(() => Promise<void>) | null} */
  let endFollowing = null;
  learn();
  languages.value = language;
  editor.text = texts[language];

  /** @param {string} chosen */
  function choose(chosen) {
    texts[language] = editor.text;
    language = chosen;
    editor.text = texts[language];
  }

  async function learn() {
    vocabulary.learn(await db.catalog().catch(() => []));
  }

  /** @param {any} error */
  function fail(error) {
    messages.replaceChildren(failure(error, (position) => editor.goTo(position)));
    editor.showError(error.position?.line ? error.position : null);
  }

  function clear() {
    messages.replaceChildren();
    editor.showError(null);
    result?.close();
    result = null;
    output.replaceChildren();
  }

  /** @param {string} caption */
  function newResult(caption) {
    result?.close();
    result = new ResultView(caption);
    output.replaceChildren(result.element);
    return result;
  }

  /** Do something with the present text, and show what goes wrong. @param {(text: string) => Promise<void>} work */
  async function attempt(work) {
    texts[language] = editor.text;
    await stop();
    clear();
    const running = element("p", { class: "note", role: "status" }, "running …");
    const slow = setTimeout(() => messages.replaceChildren(running), SLOW_MS);
    try {
      await work(editor.text);
      running.remove();
    } catch (error) {
      fail(error);
    } finally {
      clearTimeout(slow);
    }
    learn();
  }

  function run() {
    return attempt(async (text) => {
      const answer = language === "sql" ? await db.sql(text)
        : await db.query(text, { language: isRelationName(text) ? undefined : "datalog", limit: MAX_ROWS });
      if (answer.columns.length) newResult("Result").show(answer);
      else output.replaceChildren(element("p", { role: "status" }, answer.tag ?? "done"));
    });
  }

  function follow() {
    return attempt(async (text) => {
      const live = newResult("Live result");
      const start = language === "sql" ? followSql : followRules;
      endFollowing = await start(db, text, (followed) => live.apply(followed), (error) => {
        stopButton.disabled = true;
        fail(error);
      });
      stopButton.disabled = false;
    });
  }

  async function stop() {
    stopButton.disabled = true;
    const end = endFollowing;
    endFollowing = null;
    await end?.();
  }

  function explain() {
    return attempt(async (text) => {
      const explanation = language === "sql" ? await explainSql(text) : await explainRules(text);
      const view = new GraphView("Plan");
      output.replaceChildren(element("section", { "aria-label": "Plan" }, element("h2", {}, "Plan"), view.element,
        element("details", {}, element("summary", {}, "As text"), element("pre", {}, explanation))));
      view.set(planGraph(explanation));
    });
  }

  /** @param {string} text @returns {Promise<string>} */
  async function explainSql(text) {
    const isExplained = /^\s*explain\b/i.test(text);
    try {
      const { rows } = await db.sql(isExplained ? text : `EXPLAIN\n${text}`);
      return rows.map(([line]) => line).join("\n");
    } catch (error) {
      const { position } = /** @type {any} */ (error);
      if (position?.line && !isExplained) position.line -= 1; // the line of EXPLAIN
      throw error;
    }
  }

  /** Explain a rule by its name, or the last rule of a text, which is registered meanwhile.
   *  @param {string} text @returns {Promise<string>} */
  async function explainRules(text) {
    if (isRelationName(text)) return db.explain(text.trim());
    const before = new Set((await db.catalog()).map(({ name }) => name));
    const name = (await db.register(text)).at(-1) ?? "";
    try {
      return await db.explain(name);
    } finally {
      if (!before.has(name)) await db.unregister(name);
    }
  }

  return () => {
    texts[language] = editor.text;
    stop();
    result?.close();
  };
}
