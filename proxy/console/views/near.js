// The near cache: its rules, what they keep, and what is asked for most. A rule's time is set here.

import { act, send } from "../act.js";
import { confirm } from "../ask.js";
import { h } from "../element.js";
import { duration, foreign, lines, percent, rough, size, whole } from "../format.js";
import { read } from "../source.js";
import { mark } from "../state.js";
import { ACTIONS, table } from "../table.js";

/** @typedef {import("../facts.js").NearRule} NearRule */
/** @typedef {import("../facts.js").NearKey} NearKey */

/** @type {import("../views.js").View} */
export const near = {
  name: "near",
  title: "Near",
  isThere: (facts) => facts.near !== undefined,
  draw: ({ facts, address }) => {
    const found = facts.near;
    if (!found) return null;
    const { memory, bytes, keys, settings_file: file } = found;
    return [
      h("h1", null, "Near cache"),
      h(
        "p",
        null,
        `${whole(keys)} keys in ${size(bytes)} of ${size(memory)}. `,
        file
          ? `Settings are kept in ${foreign(file)}.`
          : "Settings that are changed here end with the process.",
      ),
      table("Rules", COLUMNS, found.rules, (rule) => rule.name, { address, sort: "" }),
      h(
        "p",
        { class: "note" },
        "Hits and misses are those since the start, while a rule is on. What others change at the servers is seen " +
          "after a rule's time at most.",
      ),
      hottest(),
    ];
  },
};

/** Hits of all answers that the rule was asked for. @param {NearRule} rule */
function ratio({ hits, misses, joined }) {
  const all = hits + misses + joined;
  return all ? hits / all : null;
}

/** @type {import("../table.js").Column<NearRule>[]} */
const COLUMNS = [
  {
    name: "rule",
    title: "Rule",
    isRowHead: true,
    by: (rule) => rule.name,
    cell: (rule) => [foreign(rule.name, 60), h("small", null, foreign(rule.keys, 120))],
  },
  { name: "state", title: "State", by: (rule) => Number(rule.on), cell: state },
  { name: "ttl", title: "Time", cell: time },
  {
    name: "ratio",
    title: "Hit ratio",
    isFigure: true,
    by: (rule) => ratio(rule) ?? -1,
    cell: (rule) => percent(ratio(rule)),
  },
  { name: "hits", title: "Hits", isFigure: true, by: (rule) => rule.hits, cell: (rule) => rough(rule.hits) },
  {
    name: "misses",
    title: "Misses",
    isFigure: true,
    by: (rule) => rule.misses,
    cell: (rule) => rough(rule.misses),
  },
  {
    name: "age",
    title: "Age at a hit",
    isFigure: true,
    by: (rule) => rule.age_at_hit,
    cell: (rule) => (rule.hits ? duration(rule.age_at_hit) : "–"),
  },
  {
    name: "entries",
    title: "Kept",
    isFigure: true,
    by: (rule) => rule.entries,
    cell: (rule) => [whole(rule.entries), h("small", null, size(rule.bytes))],
  },
  { name: "gone", title: "Not kept, dropped", cell: reasons },
  { name: "act", title: ACTIONS, cell: buttons },
];

/** @param {NearRule} rule */
function state({ on, configured }) {
  const differs = Object.entries(configured)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  return [
    h("span", { class: "state" }, mark(on ? "good" : differs ? "warn" : "quiet"), on ? "on" : "off: nothing is kept"),
    differs && h("small", null, `the file says ${foreign(differs)}`),
  ];
}

/** @param {NearRule} rule */
function time({ settings }) {
  const more = ["stale", "negative"].filter((name) => settings[name] && settings[name] !== "0s");
  return [
    foreign(settings.ttl, 30),
    more.length > 0 &&
      h("small", null, more.map((name) => `${name} ${foreign(settings[name], 30)}`).join(", ")),
  ];
}

/** @param {NearRule} rule */
function reasons({ refused, dropped }) {
  const told = Object.entries({ ...refused, ...dropped })
    .filter(([, count]) => count > 0)
    .map(([why, count]) => `${why.replaceAll("_", " ")} ${rough(count)}`);
  return h("small", { class: "why" }, told.join(", "));
}

/** @param {NearRule} rule */
function buttons({ name, on, settings }) {
  /** @param {SubmitEvent} event */
  const set = (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    setTime(name, String(new FormData(form).get("ttl") ?? "").trim());
  };
  const label = `New time of ${foreign(name, 60)}`;
  return h(
    "form",
    { class: "inline", onsubmit: set },
    h("input", {
      name: "ttl",
      size: 5,
      required: true,
      placeholder: foreign(settings.ttl, 12),
      "aria-label": label,
    }),
    h("button", null, "Set"),
    h("button", { type: "button", onclick: () => switchRule(name, !on) }, on ? "Switch off" : "Switch on"),
  );
}

/** @param {string} rule @param {string} ttl */
async function setTime(rule, ttl) {
  const isMeant = await confirm(
    `Keep replies of ${foreign(rule, 60)} for ${foreign(ttl, 30)}?`,
    [
      "It holds at once, for what is kept already as well.",
      "With a longer time clients may see values that others have changed at the servers for as long. " +
        "With a shorter one more requests reach the servers.",
    ],
    "Set",
  );
  if (isMeant) await act("Set", () => send("POST", `near/set?${new URLSearchParams({ rule, ttl })}`));
}

/** @param {string} rule @param {boolean} isOn */
async function switchRule(rule, isOn) {
  const effects = isOn
    ? ["Replies are kept again. Clients may see values that others have changed at the servers for its time."]
    : ["All that it keeps is dropped, and every request goes to the servers: clients wait for them again."];
  const isMeant = await confirm(
    `Switch ${foreign(rule, 60)} ${isOn ? "on" : "off"}?`,
    effects,
    isOn ? "Switch on" : "Switch off",
  );
  if (isMeant)
    await act("Switch", () => send("POST", `near/${isOn ? "on" : "off"}?${new URLSearchParams({ rule })}`));
}

function hottest() {
  const { value, status, text } = read("near/top", 3000);
  if (status && !value) return h("p", { class: "words" }, lines(text));
  /** @type {NearKey[]} */
  const keys = value ?? [];
  return h(
    "section",
    null,
    h("h2", null, "Hottest keys"),
    table(
      "Hottest keys",
      [
        { name: "key", title: "Key", isRowHead: true, cell: (key) => foreign(key.key, 120) },
        { name: "rule", title: "Rule", cell: (key) => foreign(key.rule, 60) },
        { name: "hits", title: "Hits", isFigure: true, cell: (key) => whole(key.hits) },
        { name: "size", title: "Size", isFigure: true, cell: (key) => size(key.bytes) },
        { name: "age", title: "Age", isFigure: true, cell: (key) => duration(key.age) },
      ],
      keys,
      (key) => `${key.rule} ${key.key}`,
      { none: "Nothing that is kept has been asked for again." },
    ),
  );
}
