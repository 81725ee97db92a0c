// A form that narrows what a view shows, by words that stand in the address.

import { replace } from "./address.js";
import { h } from "./element.js";
import { foreign } from "./format.js";

/** @typedef {import("./address.js").Address} Address */

/** @param {Address} address @param {import("./element.js").Child} choices @param {string} count */
export function filters(address, choices, count) {
  return h(
    "form",
    {
      class: "filters",
      role: "search",
      onsubmit: (/** @type {SubmitEvent} */ event) => event.preventDefault(),
    },
    h(
      "label",
      null,
      "Text ",
      h("input", {
        type: "search",
        value: address.values.q ?? "",
        oninput: (/** @type {any} */ event) => replace(address, { q: event.target.value }),
      }),
    ),
    choices,
    h("output", null, count),
  );
}

/**
 * One of these, or all.
 *
 * @param {string} title @param {string} name @param {string[]} options @param {Address} address
 */
export function choice(title, name, options, address) {
  const choose = (/** @type {any} */ event) => replace(address, { [name]: event.target.value });
  return h(
    "label",
    null,
    `${title} `,
    h(
      "select",
      { value: address.values[name] ?? "", onchange: choose },
      h("option", { value: "" }, "all"),
      options.map((option) =>
        h("option", { value: option, key: option }, option === "out" ? "not up" : foreign(option, 60)),
      ),
    ),
  );
}
