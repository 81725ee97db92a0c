// Tables: a head whose columns sort, and rows.

import { replace } from "./address.js";
import { h } from "./element.js";
import { visibleRows } from "./visible_rows.js";

/** @typedef {import("./address.js").Address} Address */
/** @typedef {import("./element.js").Child} Child */

/**
 * @template T
 * @typedef {object} Column
 * @property {string} name  its name in the address
 * @property {Child} title
 * @property {(row: T) => Child} cell
 * @property {(row: T) => string | number} [by]  what it is sorted by
 * @property {boolean} [isFigure]
 * @property {boolean} [isRowHead]
 * @property {string} [class]
 */

/** The title of a column of buttons. */
export const ACTIONS = h("span", { class: "hidden" }, "Actions");

/** A table whose rows are in the order that the address names, as `rate` or `-rate`.
 * @template T
 * @param {string} caption @param {Column<T>[]} columns @param {T[]} rows
 * @param {(row: T) => string | number} key
 * @param {{ address?: Address, sort?: string, none?: string, class?: string }} [options] */
export function table(caption, columns, rows, key, { address, sort = "", none = "", ...rest } = {}) {
  const order = address?.values.sort ?? sort;
  const isDown = order.startsWith("-");
  const by = columns.find((column) => column.name === order.replace(/^-/, ""))?.by;
  const sorted = by ? [...rows].sort((a, b) => compare(by(a), by(b)) * (isDown ? -1 : 1)) : rows;
  const id = `rows-of-${caption}`.replaceAll(" ", "-");
  const shown = visibleRows(sorted.length, document.getElementById(id));
  const row = (/** @type {T} */ one, /** @type {number} */ at) =>
    h(
      "tr",
      { key: key(one), "aria-rowindex": shown && shown.first + at + 2 },
      columns.map((column) => cell(column, one)),
    );
  return h(
    "div",
    // What may be wider than the window can be scrolled by keyboard.
    {
      class: `scroll ${rest.class ?? ""} ${shown ? "many" : ""}`,
      tabindex: "0",
      role: "region",
      "aria-label": caption,
    },
    h(
      "table",
      { "aria-rowcount": shown && sorted.length + 1 },
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((column) => head(column, order, address)),
        ),
      ),
      h(
        "tbody",
        { id },
        shown && space(shown.before, columns.length, "above"),
        (shown ? sorted.slice(shown.first, shown.end) : sorted).map(row),
        shown && space(shown.behind, columns.length, "below"),
      ),
    ),
    rows.length === 0 && none && h("p", { class: "none" }, none),
  );
}

/** Stands for rows that are not made. @param {number} height @param {number} columns @param {string} key */
function space(height, columns, key) {
  return h("tr", { key, "aria-hidden": "true", class: "space" }, h("td", { colspan: columns, height }));
}

/** @template T @param {Column<T>} column @param {string} order @param {Address} [address] */
function head(column, order, address) {
  const isUp = order === column.name;
  const isDown = order === `-${column.name}`;
  const attributes = { scope: "col", class: classOf(column) };
  if (!address || !column.by) return h("th", attributes, column.title);
  // Figures are wanted with the largest first.
  const next = column.isFigure
    ? isDown
      ? column.name
      : `-${column.name}`
    : isUp
      ? `-${column.name}`
      : column.name;
  return h(
    "th",
    { ...attributes, "aria-sort": isUp ? "ascending" : isDown ? "descending" : "none" },
    h("button", { class: "plain", onclick: () => replace(address, { sort: next }) }, column.title),
  );
}

/** @template T @param {Column<T>} column @param {T} row */
function cell(column, row) {
  const attributes = { class: classOf(column) };
  return column.isRowHead
    ? h("th", { ...attributes, scope: "row" }, column.cell(row))
    : h("td", attributes, column.cell(row));
}

/** @template T @param {Column<T>} column */
const classOf = (column) => [column.isFigure && "figure", column.class].filter(Boolean).join(" ") || null;

const ORDER = new Intl.Collator("en", { numeric: true });

/** @param {string | number} a @param {string | number} b */
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return ORDER.compare(String(a), String(b));
}
