// The route tree, drawn with its traffic; and the way of a key or a statement through it.

import { replace } from "../address.js";
import { h } from "../element.js";
import { foreign, lines, rough } from "../format.js";
import { drawing } from "../drawing.js";
import { read } from "../source.js";
import { table } from "../table.js";
import { wayOf } from "../way.js";

/** @typedef {import("../facts.js").Facts} Facts */
/** @typedef {import("../facts.js").Tree} Tree */
/** @typedef {import("../facts.js").Explanation} Explanation */
/** @typedef {import("../address.js").Address} Address */

/** Steps that are deeper are not moved further to the right. */
const MOST_DEPTH = 8;

/** @type {import("../views.js").View} */
export const tree = {
  name: "tree",
  title: "Tree",
  isThere: () => true,
  draw: ({ facts, address }) => {
    const source = read("tree", 5000);
    /** @type {Tree | null} */
    const found = source.value;
    const way = explained(address, found);
    return [
      h("h1", null, "Tree"),
      question(found, address),
      way.words && h("p", { class: "words", role: "alert" }, way.words),
      way.explanation && found && steps(way.explanation),
      found
        ? drawing(found, facts, wayOf(way.explanation, address.values.listener ?? "0"))
        : h("p", { class: "none" }, source.status ? lines(source.text) : "…"),
      found && nodes(found, facts),
    ];
  },
};

/** @param {Tree | null} found @param {Address} address */
function question(found, address) {
  const { key = "", command = "get", listener = "0" } = address.values;
  const chosen = found?.listeners.find((one) => String(one.number) === listener);
  const isSql = chosen?.protocol === "mysql";
  /** @param {SubmitEvent} event */
  const ask = (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const value = (/** @type {string} */ name) => String(form.get(name) ?? "");
    replace(address, { key: value("key"), command: value("command"), listener: value("listener") });
  };
  const listeners = (found?.listeners ?? []).map((one) =>
    h(
      "option",
      { value: one.number, key: one.number },
      `${foreign(one.address, 60)} (${foreign(one.protocol, 20)})`,
    ),
  );
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: ask },
    h(
      "label",
      { class: "long" },
      isSql ? "Statement " : "Key ",
      h("input", { type: "search", name: "key", value: key }),
    ),
    !isSql &&
      h(
        "label",
        null,
        "Command ",
        h("input", { name: "command", value: command, size: 8, spellcheck: "false" }),
      ),
    h(
      "label",
      null,
      "Listener ",
      h(
        "select",
        {
          name: "listener",
          value: listener,
          onchange: (/** @type {any} */ event) => replace(address, { listener: event.target.value }),
        },
        listeners,
      ),
    ),
    h("button", { class: "strong" }, "Show its way"),
    key && h("button", { type: "button", onclick: () => replace(address, { key: "" }) }, "Clear"),
  );
}

/**
 * @param {Address} address
 * @param {Tree | null} found
 * @returns {{ explanation?: Explanation, words?: string }}
 */
function explained({ values: { key, command = "get", listener = "0" } }, found) {
  if (!key || !found) return {};
  const isSql = found.listeners.find((one) => String(one.number) === listener)?.protocol === "mysql";
  const query = new URLSearchParams(isSql ? { sql: key, listener } : { key, command, listener });
  const source = read(`explain.json?${query}`, 2000);
  if (source.value) return { explanation: source.value };
  return source.status ? { words: lines(source.text) } : {};
}

/** @param {Explanation} explanation */
function steps({ steps: found, text }) {
  return h(
    "section",
    { key: "way" },
    h("h2", null, "Its way, and why"),
    h(
      "ol",
      { class: "steps" },
      found.map((step) => h("li", { class: `depth${Math.min(step.depth, MOST_DEPTH)}` }, lines(step.text))),
    ),
    h("details", null, h("summary", null, "As text"), h("pre", { class: "words" }, lines(text))),
  );
}

/** The same as the drawing, to be read. @param {Tree} found @param {Facts} facts */
function nodes(found, facts) {
  return h(
    "details",
    { key: "nodes" },
    h("summary", null, `All ${found.nodes.length} nodes as a table`),
    table(
      "Nodes of the tree",
      [
        { name: "id", title: "Number", isFigure: true, cell: (node) => node.id },
        { name: "handle", title: "Route", isRowHead: true, cell: (node) => foreign(node.handle, 60) },
        {
          name: "server",
          title: "Server",
          cell: ({ pool, member }) => foreign(member === undefined ? "" : `${pool}/${member}`, 100),
        },
        { name: "to", title: "Leads to", cell: (node) => node.children.join(", ") },
        {
          name: "rate",
          title: "Requests/s",
          isFigure: true,
          cell: (node) => rough(facts.edges?.[node.id] ?? 0),
        },
      ],
      found.nodes,
      (node) => node.id,
    ),
  );
}
