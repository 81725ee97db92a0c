// What the page knows: the facts of the stream, the events, and whether they are of now.

import { merge } from "./merge.js";

/** @typedef {import("./facts.js").Facts} Facts */
/** @typedef {import("./facts.js").Event} Event */

/** Events that are kept; the proxy keeps as many. */
const MOST_EVENTS = 1000;

/**
 * @type {{
 *   facts: Facts | null,
 *   events: Event[],
 *   connection: { isOpen: boolean, sinceMs: number, why: string },
 * }}
 */
export const store = {
  facts: null,
  events: [],
  connection: { isOpen: false, sinceMs: Date.now(), why: "" },
};

/** Tells those who draw. */
export function changed() {
  dispatchEvent(new CustomEvent("changed"));
}

/** A whole document. Another process has other events. @param {Facts} facts */
export function replaceFacts(facts) {
  if (store.facts?.process.id !== facts.process.id) store.events = [];
  store.facts = facts;
  changed();
}

/** A difference. @param {object} patch */
export function patchFacts(patch) {
  store.facts = merge(store.facts, patch);
  changed();
}

/** Adds what is not there yet, in the order of the numbers. @param {Event[]} events */
export function addEvents(events) {
  const last = store.events.at(-1)?.seq ?? -1;
  let all = [...store.events, ...events];
  if (!events.every((event) => event.seq > last))
    all = [...new Map(all.map((event) => [event.seq, event])).values()].sort((a, b) => a.seq - b.seq);
  store.events = all.slice(-MOST_EVENTS);
  changed();
}

/** @param {boolean} isOpen @param {string} why */
export function connectionIs(isOpen, why = "") {
  const sinceMs = store.connection.isOpen === isOpen ? store.connection.sinceMs : Date.now();
  store.connection = { isOpen, sinceMs, why };
  changed();
}
