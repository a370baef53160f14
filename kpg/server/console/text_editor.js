// @ts-check
/**
 * A text area with line numbers, completion, and a mark at the position of an error.
 *
 * Ctrl+Space, or typing a word, opens suggestions; the arrows choose one, Tab or Enter takes it, Escape closes them. A
 * screen reader hears the number of suggestions, and the one that is chosen.
 */
import { element, setText } from "./dom.js";

const MAX_SUGGESTIONS = 8;
const LINE_PIXELS = 20; // as in style.css
const PADDING_PIXELS = 8;
const WORD = /[:.]?[\p{L}_][\p{L}\p{N}_./-]*$|\.[a-z]*$/u;

export class TextEditor {
  /** @param {string} label @param {(start: string, most: number) => import("./vocabulary.js").Suggestion[]} suggest
   *  @param {() => void} run */
  constructor(label, suggest, run) {
    this._suggest = suggest;
    this._run = run;
    /** @type {import("./vocabulary.js").Suggestion[]} */
    this._suggestions = [];
    this._chosen = -1;
    /** @type {{ line: number, column: number } | null} */
    this._error = null;
    this._list = element("ul", { id: "suggestions", class: "suggestions", role: "listbox", "aria-label": "Suggestions",
      hidden: true });
    this._lines = element("pre", { class: "lines", "aria-hidden": "true" }, "1");
    this._mark = element("div", { class: "mark", hidden: true });
    this._news = element("p", { class: "hidden", role: "status" });
    this.input = element("textarea", { "aria-label": label, spellcheck: "false", autocapitalize: "off",
      autocomplete: "off", wrap: "off", "aria-autocomplete": "list",
      oninput: () => this._changed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event),
      onscroll: () => this._place(), onblur: () => this._close(), onclick: () => this._close() });
    this.element = element("div", {},
      element("div", { class: "text" }, this._lines, this.input, this._mark, this._list), this._news);
  }

  get text() {
    return this.input.value;
  }

  set text(value) {
    this.input.value = value;
    this.showError(null);
    this._number();
  }

  /** Mark a position, from 1; null removes the mark. @param {{ line: number, column: number } | null} position */
  showError(position) {
    this._error = position;
    if (position) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
    this._number();
    this._place();
  }

  /** Move the cursor to a position. @param {{ line: number, column: number }} position */
  goTo({ line, column }) {
    /** @type {string[]} */
    const lines = this.text.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    const at = Math.min(this.text.length, before + column - 1);
    this.input.focus();
    this.input.setSelectionRange(at, at);
  }

  _changed() {
    this.showError(null);
    const start = this._word();
    if (start.length > 0) this._open(start);
    else this._close();
  }

  _word() {
    const { selectionStart } = this.input;
    return WORD.exec(this.text.slice(0, selectionStart))?.[0] ?? "";
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const isOpen = this._suggestions.length > 0;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this._close();
      this._run();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this._open(this._word());
    } else if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const many = this._suggestions.length;
      const from = event.key === "ArrowUp" && this._chosen < 0 ? 0 : this._chosen;
      this._choose((from + (event.key === "ArrowDown" ? 1 : -1) + many) % many);
    } else if (isOpen && event.key === "Escape") {
      event.preventDefault();
      this._close();
    } else if (isOpen && (event.key === "Tab" || (event.key === "Enter" && this._chosen >= 0))) {
      event.preventDefault();
      this._take(Math.max(0, this._chosen));
    }
  }

  /** @param {string} start */
  _open(start) {
    this._suggestions = this._suggest(start, MAX_SUGGESTIONS);
    this._chosen = -1;
    this.input.removeAttribute("aria-activedescendant");
    this._list.hidden = this._suggestions.length === 0;
    setText(this._news, this._suggestions.length ? `${this._suggestions.length} suggestions` : "");
    this._list.replaceChildren(...this._suggestions.map(({ word, kind }, index) =>
      element("li", { id: `suggestion-${index}`, role: "option", "aria-selected": "false",
        onmousedown: (/** @type {Event} */ event) => {
          event.preventDefault(); // the text area keeps the focus
          this._take(index);
        } }, word, element("span", { class: "kind" }, kind))));
    if (this._suggestions.length) this.input.setAttribute("aria-controls", "suggestions");
    else this.input.removeAttribute("aria-controls");
    this._place();
  }

  _close() {
    this._suggestions = [];
    this._list.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
    this.input.removeAttribute("aria-controls");
  }

  /** @param {number} index */
  _choose(index) {
    this._chosen = index;
    [...this._list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    this.input.setAttribute("aria-activedescendant", `suggestion-${index}`);
  }

  /** @param {number} index */
  _take(index) {
    const { word } = this._suggestions[index];
    const end = this.input.selectionStart;
    this.input.setRangeText(word, end - this._word().length, end, "end");
    this._close();
    this._number();
  }

  _number() {
    const count = this.text.split("\n").length;
    const error = this._error?.line;
    const numbers = Array.from({ length: count }, (_, index) => `${index + 1 === error ? "✕ " : ""}${index + 1}`);
    setText(this._lines, numbers.join("\n"));
  }

  /** The word at a position, or one character. @param {{ line: number, column: number }} position */
  _marked({ line, column }) {
    const rest = (this.text.split("\n")[line - 1] ?? "").slice(column - 1);
    return /^[\p{L}\p{N}_]+/u.exec(rest)?.[0] ?? " ";
  }

  /** Put the mark and the suggestions where their text is. */
  _place() {
    const left = this.input.offsetLeft + PADDING_PIXELS - this.input.scrollLeft;
    const top = PADDING_PIXELS - this.input.scrollTop;
    const width = characterWidth(this.input);
    this._lines.scrollTop = this.input.scrollTop;
    this._mark.hidden = this._error === null;
    if (this._error) {
      this._mark.style.left = `${left + (this._error.column - 1) * width}px`;
      this._mark.style.top = `${top + this._error.line * LINE_PIXELS - 2}px`;
      this._mark.style.width = `${this._marked(this._error).length * width}px`;
    }
    if (!this._list.hidden) {
      const lines = this.text.slice(0, this.input.selectionStart).split("\n");
      this._list.style.left = `${left + (lines[lines.length - 1].length - this._word().length) * width}px`;
      this._list.style.top = `${top + lines.length * LINE_PIXELS}px`;
    }
  }
}

/** @type {number | undefined} */
let measuredWidth;

/** The width of a character of the text area's font. @param {HTMLElement} input */
function characterWidth(input) {
  if (measuredWidth === undefined) {
    const context = document.createElement("canvas").getContext("2d");
    if (!context) return 8;
    context.font = getComputedStyle(input).font;
    measuredWidth = context.measureText("0".repeat(50)).width / 50;
  }
  return measuredWidth;
}
