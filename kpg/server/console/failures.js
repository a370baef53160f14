// @ts-check
/** Errors of the server for people: what failed, where, the detail and what to do. */
import { element } from "./dom.js";

const INDENT = " ".repeat("detail: ".length); // of all lines but the first, which follow that word elsewhere

/** @param {string} detail */
function unindented(detail) {
  return detail.replaceAll(`\n${INDENT}`, "\n");
}

/** @param {any} error @param {(position: { line: number, column: number }) => void} [goTo] @returns {HTMLElement} */
export function failure(error, goTo) {
  const position = error.position?.line ? error.position : null;
  const place = position && goTo && element("button", { type: "button", onclick: () => goTo(position) },
    `Go to line ${position.line}, column ${position.column}`);
  return element("div", { role: "alert", class: "failure" },
    element("strong", {}, `${error.kind ?? "Error"}: `), error.what ?? error.message ?? String(error), " ", place,
    error.detail && element("div", { class: "detail" }, unindented(error.detail)), error.hint && element("div", {}, error.hint));
}
