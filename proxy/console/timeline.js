// The states of one server during the last hour, out of the events.

import { h } from "./element.js";
import { clock } from "./format.js";
import { tone } from "./state.js";

/** @typedef {import("./facts.js").Event} Event */

const HOUR = 3_600_000;
/** Lines move on in steps, so that they are seldom drawn anew. */
const STEP = 15_000;
const WIDTH = 120;

/** The events by subject, made anew when the list is another one. @type {Map<string, Event[]>} */
let bySubject = new Map();
/** @type {Event[] | null} */
let indexed = null;
/** @type {Map<string, { until: number, state: string, line: import("./element.js").Described }>} */
let drawn = new Map();

/** @param {Event[]} events */
function index(events) {
  if (events === indexed) return;
  indexed = events;
  bySubject = new Map();
  drawn = new Map();
  for (const event of events) {
    const own = bySubject.get(event.subject);
    if (own) own.push(event);
    else bySubject.set(event.subject, [event]);
  }
}

/** @param {string} subject  as events name it: `POOL/MEMBER`
 * @param {string} state  that of now @param {Event[]} events @param {number} startedMs  of the process */
export function timeline(subject, state, events, startedMs) {
  index(events);
  const until = Math.ceil(Date.now() / STEP) * STEP;
  const found = drawn.get(subject);
  if (found?.until === until && found.state === state) return found.line;
  const line = make(stretches(bySubject.get(subject) ?? [], state, until - HOUR, until, startedMs), until);
  drawn.set(subject, { until, state, line });
  return line;
}

/**
 * @param {Event[]} events
 * @param {string} state
 * @param {number} from
 * @param {number} until
 * @param {number} startedMs
 */
function stretches(events, state, from, until, startedMs) {
  const changes = events.filter((event) => event.after !== undefined);
  const first = Math.max(from, Math.min(startedMs, until));
  const found = [];
  let [begin, current] = [first, changes[0]?.before ?? (changes.length ? "up" : state)];
  for (const change of changes) {
    const at = Math.max(first, change.at_ms);
    if (at > begin) found.push({ begin, end: at, state: current });
    [begin, current] = [at, change.after ?? ""];
  }
  // The last stretch has the state of now, also if no event has told of it.
  found.push({ begin, end: until, state });
  return found;
}

/** @param {{ begin: number, end: number, state: string }[]} stretches @param {number} until */
function make(stretches, until) {
  const x = (/** @type {number} */ ms) => ((ms - (until - HOUR)) / HOUR) * WIDTH;
  const words = stretches
    .map(({ begin, state }) => `${state} from ${clock(begin)}`)
    .slice(-5)
    .join(", ");
  return h(
    "svg",
    {
      class: "timeline",
      viewBox: `0 0 ${WIDTH} 10`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": words,
    },
    h("title", null, words),
    stretches.map(({ begin, end, state }) => {
      const which = tone(state);
      const width = Math.max(x(end) - x(begin), 1);
      // What is worse is also higher.
      const height = { good: 3, quiet: 3, warn: 6, bad: 10 }[which];
      const place = { x: x(begin).toFixed(1), width: width.toFixed(1), y: 10 - height, height };
      return h("rect", { class: which, ...place });
    }),
  );
}
