// Documents that are no part of the stream. A view reads one as if it were there; it is asked for, and drawn
// anew when it has come.

import { changed } from "./store.js";

/**
 * @typedef {object} Source
 * @property {any} value    the document, as JSON
 * @property {string} text  the document, or the proxy's words where it refuses
 * @property {number} status  of the last answer; 0: there was none yet
 * @property {number} askedMs
 */

/** Documents that are kept at most. */
const MOST = 50;

/** @type {Map<string, Source>} */
const sources = new Map();

/** What is known of a document, which is asked for again every so often.
 * @param {string} path @param {number} everyMs @returns {Source} */
export function read(path, everyMs = Infinity) {
  const found = sources.get(path) ?? { value: null, text: "", status: 0, askedMs: -Infinity };
  // The one that was read longest ago goes.
  sources.delete(path);
  sources.set(path, found);
  for (const [oldest] of sources) if (sources.size > MOST) sources.delete(oldest);
  const now = Date.now();
  // What failed is asked for again soon.
  if (
    now - found.askedMs >
    (found.status === 200 || found.status === 404 ? everyMs : Math.min(everyMs, 5000))
  ) {
    found.askedMs = now;
    ask(path, found);
  }
  return found;
}

/** Has all documents asked for again. */
export function forget() {
  for (const source of sources.values()) source.askedMs = -Infinity;
  changed();
}

/** @param {string} path @param {Source} source */
async function ask(path, source) {
  try {
    const response = await fetch(path, { cache: "no-store" });
    const text = await response.text();
    const isJson = response.ok && response.headers.get("content-type")?.startsWith("application/json");
    source.value = isJson ? JSON.parse(text) : null;
    source.text = text;
    source.status = response.status;
  } catch (error) {
    source.text = String(error);
  }
  changed();
}
