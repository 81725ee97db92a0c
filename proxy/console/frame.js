// What is around every view.

import { format } from "./address.js";
import { h } from "./element.js";
import { clock, foreign } from "./format.js";
import { showReport } from "./report.js";
import { mark, tone } from "./state.js";

/** @typedef {typeof import("./store.js").store} Store */
/** @typedef {import("./views.js").View} View */

/** @param {Store} store */
export function header({ facts, connection }) {
  return [
    h("a", { class: "brand", href: "#/overview" }, "Proxima"),
    facts && h("span", { class: "node" }, foreign(facts.process.node ?? facts.process.host, 60)),
    facts &&
      h("span", { class: "health" }, mark(tone(facts.health.state)), facts.health.state.replaceAll("_", " ")),
    h(
      "span",
      { class: connection.isOpen ? "connection" : "connection cut" },
      connectionWords({ facts, connection }),
    ),
    h("button", { class: "report", onclick: showReport, disabled: !facts }, "Copy for a report"),
  ];
}

/** @param {Pick<Store, "facts" | "connection">} store */
function connectionWords({ facts, connection }) {
  if (connection.isOpen) return "live";
  if (!facts && !connection.why) return "connecting …";
  return `not connected since ${clock(connection.sinceMs)}: ${foreign(connection.why, 120)}`;
}

/** @param {View[]} views @param {View | undefined} current */
export function menu(views, current) {
  const links = views.map((view) => {
    const attributes = { href: format(view.name), "aria-current": view === current ? "page" : null };
    return h("li", { key: view.name }, h("a", attributes, view.title));
  });
  return h("ul", null, links);
}

/**
 * What a screen reader is told: a change of health or of the connection, and no figures.
 * @param {Store} store
 */
export function news({ facts, connection }) {
  if (!connection.isOpen) return facts ? "Not connected to the proxy." : "";
  return facts ? `This proxy is ${facts.health.state.replaceAll("_", " ")}.` : "";
}
