// How it goes: one sentence, the figures of the last minutes, who waits, what is hot, what has changed.

import { h } from "../element.js";
import { foreign } from "../format.js";
import { byHand } from "../overview/by_hand.js";
import { configuration } from "../overview/configuration.js";
import { figures } from "../overview/figures.js";
import { hotKeys } from "../overview/hot_keys.js";
import { listeners } from "../overview/listeners.js";
import { out } from "../overview/out.js";
import { pools } from "../overview/pools.js";
import { process } from "../overview/process.js";
import { mark, tone } from "../state.js";
import { eventList } from "./events.js";

/** Events that are shown; all are in a view of their own. */
const EVENTS = 10;

/** @type {import("../views.js").View} */
export const overview = {
  name: "overview",
  title: "Overview",
  isThere: () => true,
  draw: ({ facts, events }) => [
    h(
      "h1",
      { class: "sentence" },
      mark(tone(facts.health.state)),
      h("span", null, sentence(facts.health.sentence)),
    ),
    figures(facts),
    h(
      "div",
      { class: "columns" },
      h("div", null, out(facts), byHand(facts), pools(facts), listeners(facts), hotKeys(facts)),
      h("div", null, configuration(facts), changes(events), process(facts)),
    ),
  ],
};

/** The words of the proxy, with what is between backticks set apart. @param {string} text */
function sentence(text) {
  return foreign(text, 600)
    .split("`")
    .map((part, at) => (at % 2 ? h("code", null, part) : part));
}

/** @param {import("../facts.js").Event[]} events */
function changes(events) {
  return h(
    "section",
    { key: "changes" },
    h("h2", null, "What changed last"),
    eventList(events.slice(-EVENTS).reverse()),
    h("p", { class: "note" }, h("a", { href: "#/events" }, "All events")),
  );
}
