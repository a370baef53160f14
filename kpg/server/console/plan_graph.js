// @ts-check
/**
 * The text of EXPLAIN as a graph.
 *
 * A plan of SQL is a tree by indentation, up to the first empty line: rows flow from the inner lines to the outer ones. The
 * explanation of a rule has strata, rules and numbered steps: relations flow into the steps that read them, the steps
 * of a rule follow each other, and the last one leads to the relation that the rule derives.
 */

const STEP = /^\s+\d+\. (.*)$/;
const RULE = /^\s+([^\s(]+)\(.*\) :- /;
const ATOM = /^(?:scan|[a-z]*-?join|without|not)\s+([^\s(]+)\(/;
const BODY_ATOM = /([A-Za-z_:][\w./:-]*)\(/g;

/** @param {string} text @returns {import("./graph_view.js").GraphShape} */
export function planGraph(text) {
  const lines = text.split("\n");
  return lines.some((line) => /^stratum \d+/.test(line)) ? ruleGraph(lines) : treeGraph(lines);
}

/** @param {string[]} lines @returns {import("./graph_view.js").GraphShape} */
function treeGraph(lines) {
  const end = lines.findIndex((line) => !line.trim());
  /** @type {{ id: string, depth: number }[]} */
  const open = [];
  /** @type {import("./graph_view.js").GraphShape} */
  const graph = { nodes: [], edges: [] };
  lines.slice(0, end < 0 ? lines.length : end).forEach((line, index) => {
    const depth = line.length - line.trimStart().length;
    const id = String(index);
    while (open.length && /** @type {any} */ (open.at(-1)).depth >= depth) open.pop();
    graph.nodes.push({ id, lines: [line.trim()], kind: /^scan/i.test(line.trim()) ? "relation" : "" });
    const parent = open.at(-1);
    if (parent) graph.edges.push([id, parent.id]);
    open.push({ id, depth });
  });
  return graph;
}

/** @param {string[]} lines @returns {import("./graph_view.js").GraphShape} */
function ruleGraph(lines) {
  /** @type {Map<string, import("./graph_view.js").GraphNode>} */
  const nodes = new Map();
  /** @type {[string, string][]} */
  const edges = [];
  const relation = (/** @type {string} */ name) => {
    const id = `relation ${name}`;
    if (!nodes.has(id)) nodes.set(id, { id, lines: [name], kind: "relation" });
    return id;
  };
  let head = "";
  let text = ""; // of the rule
  let last = "";
  const finish = () => {
    if (head && !last) { // its steps are not listed: one box for the whole rule
      last = `rule ${nodes.size}`;
      nodes.set(last, { id: last, lines: [text] });
      for (const [, name] of text.slice(text.indexOf(":-")).matchAll(BODY_ATOM)) edges.push([relation(name), last]);
    }
    if (head) edges.push([last, relation(head)]);
    last = "";
  };
  const end = lines.findIndex((line) => line.startsWith("index of ")); // names rules again
  lines.slice(0, end < 0 ? lines.length : end).forEach((line, index) => {
    const rule = RULE.exec(line);
    const step = STEP.exec(line);
    if (rule && !step) {
      finish();
      head = rule[1];
      text = line.trim();
    } else if (step && head) {
      const id = `step ${index}`;
      nodes.set(id, { id, lines: [step[1]] });
      const atom = ATOM.exec(step[1]);
      if (atom) edges.push([relation(atom[1]), id]);
      if (last) edges.push([last, id]);
      last = id;
    } else if (!line.trim()) {
      finish();
      head = "";
    }
  });
  finish();
  return { nodes: [...nodes.values()], edges };
}
