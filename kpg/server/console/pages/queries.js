// @ts-check
/** Queries by lag and CPU time, and requests under way; an admin can stop them. */
import { element } from "../dom.js";
import { failure } from "../failures.js";
import { count, duration, percent, size } from "../formats.js";
import { Poller } from "../poller.js";
import { ask } from "../questions.js";
import { Rates } from "../rates.js";
import { VirtualTable } from "../virtual_table.js";

export const title = "Queries";
const SLOW_SHARE = 0.1; // of one processor, above which a query counts as slow

/** @type {import("../main.js").ConsolePage["show"]} */
export function show(page, { db, isAdmin }) {
  const busy = new Rates();
  const share = (/** @type {any} */ row) => busy.of(String(row.number));
  const isSlow = (/** @type {any} */ row) => (share(row) ?? 0) > SLOW_SHARE || row.state.startsWith("failed");
  const problems = element("div", {});
  const choice = element("select", { "aria-label": "Which queries", onchange: () => showQueries() },
    element("option", { value: "all" }, "all"), element("option", { value: "slow" }, "slow or failed"),
    element("option", { value: "lagging" }, "lagging"));
  const queries = new VirtualTable("Queries that clients follow", [
    { title: "Number", numeric: true, text: (row) => String(row.number), value: (row) => row.number },
    { title: "Name", text: (row) => row.name },
    { title: "Session", numeric: true, text: (row) => String(row.session ?? ""), value: (row) => row.session },
    { title: "Tenant", text: (row) => row.tenant ?? "" },
    { title: "Lag", numeric: true, text: (row) => count(row.lag), value: (row) => row.lag },
    { title: "Unread", numeric: true, text: (row) => count(row.unread_rows), value: (row) => row.unread_rows },
    { title: "Busy", numeric: true, text: (row) => percent(share(row)), value: share },
    { title: "CPU time", numeric: true, text: (row) => duration(row.cpu_seconds), value: (row) => row.cpu_seconds },
    { title: "State kept", numeric: true, text: (row) => size(row.kept_bytes), value: (row) => row.kept_bytes },
    { title: "Dataflow", text: (row) => row.dataflow, link: (row) => `#dataflows/${encodeURIComponent(row.dataflow)}` },
    { title: "State", text: (row) => row.state },
    { title: "Stop", text: () => "Stop", label: (row) => `Stop query ${row.number}, ${row.name}`, can: () => isAdmin,
      act: (row) => stop(`Stop query ${row.number}, ${row.name}, of session ${row.session}?`, { number: row.number }) },
  ], { sort: 7, descending: true, rowClass: (row) => (row.lag > 0 || isSlow(row) ? "bad" : "") });
  queries.element.querySelector(".bar")?.append(element("label", {}, "Show ", choice));
  queries.element.classList.add("tall");
  const requests = new VirtualTable("Requests under way", [
    { title: "Session", numeric: true, text: (row) => String(row.session), value: (row) => row.session },
    { title: "Request", numeric: true, text: (row) => String(row.id), value: (row) => row.id },
    { title: "Type", text: (row) => row.type },
    { title: "Time", numeric: true, text: (row) => duration(row.seconds), value: (row) => row.seconds },
    { title: "Text", text: (row) => row.text },
    { title: "Stop", text: () => "Stop", label: (row) => `Stop the requests of session ${row.session}`,
      can: () => isAdmin,
      act: (row) => stop(`Stop the requests that session ${row.session} waits for?`, { session: row.session }) },
  ], { sort: 3, descending: true });
  requests.element.classList.add("short");
  page.append(element("h2", { class: "hidden" }, title), problems, queries.element, requests.element);
  if (!isAdmin) page.append(element("p", { class: "note" }, "To stop queries, log in with the token of an admin."));

  /** @param {string} question @param {{ number?: number, session?: number }} target */
  async function stop(question, target) {
    if (!(await ask(question, "Stop"))) return;
    try {
      await db.stop(target);
      problems.replaceChildren();
      poller.now();
    } catch (error) {
      problems.replaceChildren(failure(error));
    }
  }

  /** @type {any[]} */
  let rows = [];
  function showQueries() {
    const tests = { all: () => true, slow: isSlow, lagging: (/** @type {any} */ row) => row.lag > 0 };
    queries.set(rows.filter(/** @type {any} */ (tests)[choice.value]));
  }
  const wanted = [{ table: "queries" }, { table: "requests" }];
  const poller = new Poller(db, () => wanted, (table, received, error) => {
    if (table === "requests") {
      requests.set(received);
      if (error) requests.note(error.what);
      return;
    }
    rows = received;
    busy.read(rows.map((row) => [String(row.number), row.cpu_seconds]));
    showQueries();
    if (error) problems.replaceChildren(failure(error));
  });
  return () => {
    poller.stop();
    queries.close();
    requests.close();
  };
}
