// What has changed: a list that can be filtered.

import { format } from "../address.js";
import { h } from "../element.js";
import { choice, filters } from "../filters.js";
import { clock, foreign, lines } from "../format.js";
import { mark, tone } from "../state.js";

/** @typedef {import("../facts.js").Event} Event */

/** Letters of a text that are shown; the log has the whole. */
const MOST_TEXT = 1000;

/** @type {import("../views.js").View} */
export const events = {
  name: "events",
  title: "Events",
  isThere: () => true,
  draw: ({ events: all, address }) => {
    const { q = "", kind = "" } = address.values;
    const wanted = q.toLowerCase();
    const isWanted = (/** @type {Event} */ event) =>
      (!kind || event.kind === kind) && (!wanted || textOf(event).toLowerCase().includes(wanted));
    const found = all.filter(isWanted).reverse();
    const kinds = [...new Set(all.map((event) => event.kind))].sort();
    return [
      h("h1", null, "Events"),
      filters(address, choice("Kind", "kind", kinds, address), `${found.length} of ${all.length}`),
      eventList(found),
    ];
  },
};

/** @param {Event} event */
const textOf = ({ kind, subject, text, why = "" }) => [kind, subject, text, why].join(" ");

/** Events, as they are given. @param {Event[]} list */
export function eventList(list) {
  if (list.length === 0) return h("p", { class: "none" }, "Nothing has happened.");
  return h(
    "ol",
    { class: "events", reversed: true },
    list.map((event) => h("li", { key: event.seq }, row(event))),
  );
}

/** Rows by event: an event never changes. @type {WeakMap<Event, import("../element.js").Child>} */
const rows = new WeakMap();

/** @param {Event} event */
function row(event) {
  const found = rows.get(event);
  if (found) return found;
  const { at_ms, level, kind, subject, before, after, why, text } = event;
  const isState = tone(after) !== "quiet";
  const isChange = Boolean(before && after) || isState;
  const made = [
    h("time", { datetime: new Date(at_ms).toISOString() }, clock(at_ms)),
    h(
      "span",
      { class: "state kind" },
      mark(isState ? tone(after) : tone(level)),
      foreign(kind, 40).replaceAll("_", " "),
    ),
    h(
      "span",
      { class: "told" },
      subject && h("a", { href: format("events", { q: subject.slice(0, 200) }) }, foreign(subject, 120)),
      isChange &&
        h(
          "span",
          null,
          [before, after]
            .filter(Boolean)
            .map((state) => foreign(state, 60))
            .join(" → "),
        ),
      h("span", { class: "why" }, lines((isChange ? why : text)?.slice(0, MOST_TEXT))),
    ),
  ];
  rows.set(event, made);
  return made;
}
