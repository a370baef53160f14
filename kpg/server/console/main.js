// @ts-check
/**
 * The console of `kpg serve`: what the db holds, what it does, and an editor for queries.
 *
 * All data comes through the client `kpg.js`: `inspect` for tables, `query`, `sql`, `explain` and interests. Each page is
 * a module with a function `show(page, db, rest)` that fills the page, and returns what ends it.
 *
 * @typedef {{ title: string, show: (page: HTMLElement, context: PageContext) => () => void }} ConsolePage
 * @typedef {{ db: import("../../client/kpg.js").Connection, rest: string, isAdmin: boolean }} PageContext
 */
import { connect } from "/kpg.js";
import { element } from "./dom.js";
import { keepToken, keptToken, showLogin } from "./login.js";
import { followTheme } from "./theme.js";
import * as charts from "./pages/charts.js";
import * as dataflows from "./pages/dataflows.js";
import * as editor from "./pages/editor.js";
import * as overview from "./pages/overview.js";
import * as queries from "./pages/queries.js";
import * as workers from "./pages/workers.js";

/** @type {Record<string, ConsolePage>} */
const PAGES = { overview, dataflows, charts, editor, queries, workers };
const RECONNECT_MS = 86_400_000; // a day: the console of a server that restarts comes back by itself

const page = /** @type {HTMLElement} */ (document.getElementById("page"));
const links = /** @type {HTMLElement} */ (document.getElementById("links"));
const state = /** @type {HTMLElement} */ (document.getElementById("state"));
const logout = /** @type {HTMLButtonElement} */ (document.getElementById("logout"));
/** @type {import("../../client/kpg.js").Connection | null} */
let db = null;
let end = () => {};
let shownAddress = "";

/** @param {string | null} token @param {boolean} isEntered whether a person has just entered it */
async function open(token, isEntered) {
  const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`;
  setState("connecting");
  try {
    db = await connect(address, { token: token ?? undefined, reconnect: RECONNECT_MS, onState: setState });
  } catch (error) {
    setState("");
    if (/** @type {any} */ (error).kind !== "Unreachable") keepToken(null);
    showLogin(page, isEntered || token ? error : null, (entered) => open(entered, true));
    return;
  }
  keepToken(token);
  logout.hidden = false;
  route(true);
}

/** @param {string} name open, lost, closed, connecting, or empty */
function setState(name) {
  const texts = { open: "connected", lost: "connection lost, connecting again", connecting: "connecting" };
  state.textContent = /** @type {any} */ (texts)[name] ?? "";
  state.className = name;
  if (name === "closed" && db) leave("The server has ended the connection.");
}

/** @param {string | null} reason */
function leave(reason) {
  end();
  end = () => {};
  const former = db;
  db = null;
  former?.close();
  logout.hidden = true;
  links.replaceChildren();
  keepToken(null);
  setState("");
  showLogin(page, reason && { kind: "Closed", what: reason }, (token) => open(token, true));
}

/** Show the page that the address names. @param {boolean} [anew] */
function route(anew = false) {
  if (!db) return;
  const [name, ...rest] = location.hash.slice(1).split("/");
  if (name === "page") return; // the link that skips the header
  const key = PAGES[name] ? name : "overview";
  const address = [key, ...rest].join("/");
  if (address === shownAddress && !anew) return;
  shownAddress = address;
  end();
  links.replaceChildren(...Object.entries(PAGES).map(([other, { title }]) =>
    element("li", {}, element("a", { href: `#${other}`, "aria-current": other === key && "page" }, title))));
  document.title = `${PAGES[key].title} · kpg console`;
  page.replaceChildren();
  const isAdmin = db.welcome.role === "admin";
  end = PAGES[key].show(page, { db, rest: decodeURIComponent(rest.join("/")), isAdmin });
  if (!anew) page.focus({ preventScroll: true });
}

addEventListener("hashchange", () => route());
logout.addEventListener("click", () => leave(null));
followTheme(/** @type {HTMLButtonElement} */ (document.getElementById("theme")), () => dispatchEvent(new Event("theme")));
open(keptToken(), false);
