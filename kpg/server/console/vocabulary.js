// @ts-check
/** The words that the editor completes: keywords of a language, relations with their columns. */

const SQL = ("SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN LEFT RIGHT FULL CROSS ON USING UNION INTERSECT EXCEPT "
  + "DISTINCT AS WITH RECURSIVE AND OR NOT IN EXISTS BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END CAST INSERT INTO VALUES "
  + "UPDATE SET DELETE CREATE TABLE VIEW MATERIALIZED INDEX DROP ALTER PRIMARY KEY UNIQUE CHECK DEFAULT REFERENCES BEGIN "
  + "COMMIT ROLLBACK EXPLAIN SHOW COUNT SUM MIN MAX AVG COALESCE integer bigint text numeric boolean date timestamp").split(" ");
const DATALOG = ".decl .type count sum min max mean number symbol float unsigned true false nil cat strlen range".split(" ");

/** @typedef {{ word: string, kind: string }} Suggestion */

export class Vocabulary {
  constructor() {
    /** @type {Map<string, string>} */
    this._names = new Map();
  }

  /** Learn the names of a catalogue. @param {{ name: string, role: string, columns: { name: string }[] }[]} relations */
  learn(relations) {
    this._names = new Map();
    for (const { name, role, columns } of relations) {
      for (const column of columns) if (!this._names.has(column.name)) this._names.set(column.name, `column of ${name}`);
      this._names.set(name, role);
    }
  }

  /** The words that begin with a text, names first. @param {string} start @param {string} language @param {number} most
   *  @returns {Suggestion[]} */
  matches(start, language, most) {
    const lower = start.toLowerCase();
    const begins = (/** @type {string} */ word) => word.toLowerCase().startsWith(lower) && word !== start;
    const names = [...this._names].filter(([word]) => begins(word)).map(([word, kind]) => ({ word, kind }));
    names.sort((left, right) => (left.word < right.word ? -1 : 1));
    const keywords = (language === "sql" ? SQL : DATALOG).filter(begins)
      .map((word) => ({ word: language === "sql" && start === lower ? word.toLowerCase() : word, kind: "keyword" }));
    return [...names, ...keywords].slice(0, most);
  }
}
