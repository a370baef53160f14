// @ts-check
/**
 * A drawing of a graph, from top to bottom, laid out by dagre. Screen readers get its nodes as a list.
 *
 * @typedef {{ id: string, lines: string[], kind?: string, heat?: number, link?: string }} GraphNode
 *   heat: 0 to 4; kind: a class of the box
 * @typedef {{ nodes: GraphNode[], edges: [string, string][] }} GraphShape
 */
import { Graph, layout } from "./vendor/dagre.js";
import { drawn, element } from "./dom.js";

const MAX_NODES = 400; // a larger layout would block the page
const LINE_PIXELS = 16;
const CHARACTER_PIXELS = 7;
const MAX_CHARACTERS = 60;

export class GraphView {
  /** @param {string} label */
  constructor(label) {
    this._label = label;
    this.element = element("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": label });
    this._shape = "";
    /** @type {Map<string, { box: SVGElement, lines: SVGElement[] }>} */
    this._boxes = new Map();
  }

  /** Draw a graph; if only texts and heats differ from the last one, the layout stays. @param {GraphShape} graph */
  set(graph) {
    const shape = JSON.stringify([graph.nodes.map(({ id, lines }) => [id, lines.length]), graph.edges]);
    if (shape === this._shape) {
      for (const node of graph.nodes) this._update(node);
      return;
    }
    this._shape = shape;
    this._boxes.clear();
    if (graph.nodes.length > MAX_NODES) {
      this.element.replaceChildren(`${graph.nodes.length} nodes are too many for a drawing.`);
      return;
    }
    this.element.replaceChildren(this._draw(graph));
  }

  /** @param {GraphNode} node */
  _update(node) {
    const box = this._boxes.get(node.id);
    if (!box) return;
    box.box.setAttribute("class", boxClass(node));
    node.lines.forEach((line, index) => {
      const text = cut(line);
      if (box.lines[index].textContent !== text) box.lines[index].textContent = text;
    });
  }

  /** @param {GraphShape} graph @returns {SVGElement} */
  _draw({ nodes, edges }) {
    const plan = new Graph({ multigraph: true });
    plan.setGraph({ ranksep: 34, nodesep: 24, marginx: 8, marginy: 8 });
    plan.setDefaultEdgeLabel(() => ({}));
    for (const node of nodes) {
      const longest = Math.max(...node.lines.map((line) => cut(line).length), 12);
      plan.setNode(node.id, { width: longest * CHARACTER_PIXELS + 20, height: node.lines.length * LINE_PIXELS + 12 });
    }
    edges.forEach(([source, target], index) => plan.setEdge(source, target, {}, String(index)));
    layout(plan);
    const { left, width, height } = extent(plan);
    const parts = plan.edges().map((/** @type {any} */ edge) => drawn("path", { d: line(plan.edge(edge).points),
      "marker-end": "url(#arrow)" }));
    return drawn("svg", { width, height, viewBox: `${left} 0 ${width} ${height}`, role: "group", "aria-label": this._label },
      drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7,
        markerHeight: 7, orient: "auto" }, drawn("path", { d: "M0 0 L8 4 L0 8 z" }))),
      ...parts, ...nodes.map((node) => this._box(node, plan.node(node.id))));
  }

  /** @param {GraphNode} node @param {{ x: number, y: number, width: number, height: number }} place */
  _box(node, { x, y, width, height }) {
    const box = drawn("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 4, class: boxClass(node) });
    const lines = node.lines.map((text, index) =>
      drawn("text", { x, y: y - height / 2 + (index + 1) * LINE_PIXELS }, cut(text)));
    this._boxes.set(node.id, { box, lines });
    if (!node.link) return drawn("g", {}, box, ...lines);
    return drawn("a", { href: node.link, "aria-label": node.lines.join(", ") }, box, ...lines);
  }
}

/** The extent of a layout: edges may lead around its boxes. @param {any} plan */
function extent(plan) {
  const { width, height } = plan.graph();
  const across = plan.edges().flatMap((/** @type {any} */ edge) => plan.edge(edge).points.map((/** @type {any} */ { x }) => x));
  const left = Math.floor(Math.min(0, ...across.map((/** @type {number} */ x) => x - 4)));
  const right = Math.ceil(Math.max(width, ...across.map((/** @type {number} */ x) => x + 4)));
  return { left, width: right - left, height };
}

/** @param {GraphNode} node */
function boxClass(node) {
  return [node.kind ?? "", node.heat ? `heat-${node.heat}` : ""].join(" ").trim();
}

/** @param {string} text */
function cut(text) {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS - 1)}…` : text;
}

/** @param {{ x: number, y: number }[]} points */
function line(points) {
  return points.map(({ x, y }, index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(" ");
}

/** The heat of a share of one processor: 0 for less than 1%, 4 for more than half. @param {number | null} share */
export function heatOf(share) {
  if (share === null || share < 0.01) return 0;
  return share < 0.05 ? 1 : share < 0.2 ? 2 : share < 0.5 ? 3 : 4;
}
