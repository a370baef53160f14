// @ts-check
/** The login: a form for the token. The token stays in this tab, until it is closed or logs out. */
import { element } from "./dom.js";
import { failure } from "./failures.js";

const KEY = "kpg token";

/** @returns {string | null} */
export function keptToken() {
  return sessionStorage.getItem(KEY);
}

/** @param {string | null} token */
export function keepToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

/** Show the form; call a function with each token that is entered.
 *  @param {HTMLElement} page @param {any} error of the last attempt @param {(token: string) => void} enter */
export function showLogin(page, error, enter) {
  const token = element("input", { type: "password", name: "token", autocomplete: "current-password", required: true });
  const form = element("form", { class: "login", "aria-label": "Log in", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    enter(token.value.trim());
  } }, element("h2", {}, "Log in"),
  element("label", {}, "Token of this server", token),
  element("p", { class: "note" }, "The server prints a token when it starts, or reads tokens from a file."),
  error && failure(error), element("button", { class: "main" }, "Log in"));
  page.replaceChildren(form);
  token.focus();
}
