// A row for each server.

import { drain, isOrdered, undrain } from "../drains.js";
import { h } from "../element.js";
import { choice, filters } from "../filters.js";
import { clock, foreign, latency, rough, whole } from "../format.js";
import { isOut, reasonOf, stateOf, stateWord, tone } from "../state.js";
import { ACTIONS, table } from "../table.js";
import { timeline } from "../timeline.js";

/** @typedef {import("../facts.js").Facts} Facts */
/** @typedef {import("../facts.js").Event} Event */
/** @typedef {import("../facts.js").Member} Member */
/** @typedef {import("../address.js").Address} Address */

/** @type {import("../views.js").View} */
export const servers = {
  name: "servers",
  title: "Servers",
  isThere: (facts) => Object.keys(facts.members).length > 0,
  draw: ({ facts, events, address }) => {
    const all = Object.values(facts.members);
    const found = all.filter(isWanted(address.values)).sort(byName);
    return [
      h("h1", null, "Servers"),
      filters(address, choices(facts, address), `${found.length} of ${all.length}`),
      table("Servers", columns(facts, events), found, keyOf, {
        address,
        sort: "state",
        none: "No server is like that.",
        class: "servers",
      }),
    ];
  },
};

/** @param {Member} member */
const keyOf = (member) => `${member.pool}/${member.name}`;

const ORDER = new Intl.Collator("en", { numeric: true });

/** @param {Member} a @param {Member} b */
const byName = (a, b) => ORDER.compare(keyOf(a), keyOf(b));

/** What is worse comes first. @param {Member} member */
const rank = (member) => ["bad", "warn", "quiet", "good"].indexOf(tone(stateOf(member)));

/** @param {Record<string, string>} values @returns {(member: Member) => boolean} */
function isWanted({ q = "", pool = "", state = "" }) {
  const wanted = q.toLowerCase();
  return (member) =>
    (!pool || member.pool === pool) &&
    (!state || (state === "out" ? isOut(member) : stateOf(member) === state)) &&
    (!wanted || textOf(member).toLowerCase().includes(wanted));
}

/** @param {Member} member */
function textOf(member) {
  const { name, address, zone, node } = member;
  return [name, address, zone, node, reasonOf(member).why].join(" ");
}

/** @param {Facts} facts @param {Address} address */
function choices(facts, address) {
  const states = [...new Set(Object.values(facts.members).map(stateOf))].sort();
  return [
    choice("Pool", "pool", Object.keys(facts.pools), address),
    choice("State", "state", ["out", ...states.filter((state) => state !== "out")], address),
  ];
}

/** @param {Facts} facts @param {Event[]} events @returns {import("../table.js").Column<Member>[]} */
function columns(facts, events) {
  const hasCopies = Object.values(facts.members).some((member) => member.copy);
  const started = facts.process.started_ms;
  return [
    {
      name: "server",
      title: "Server",
      isRowHead: true,
      by: keyOf,
      cell: (member) => [
        h("span", { class: "name" }, foreign(member.name, 80)),
        h("small", null, foreign(member.pool, 60)),
      ],
    },
    {
      name: "state",
      title: "State",
      by: rank,
      class: "states",
      cell: (member) => [stateWord(stateOf(member)), reason(member)],
    },
    {
      name: "hour",
      title: "The last hour",
      class: "hour",
      cell: (member) => timeline(keyOf(member), stateOf(member), events, started),
    },
    figure("rate", "Requests/s", (member) => member.rate ?? 0, rough),
    figure(
      "latency",
      "Mean",
      (member) => member.mean_us ?? -1,
      (micros) => latency(micros < 0 ? null : micros),
    ),
    figure("errors", "Errors/s", (member) => member.errors ?? 0, rough),
    figure("failures", "Failures", (member) => member.failures, whole),
    figure("lanes", "Connections", (member) => member.lanes, whole),
    figure("waiting", "Under way", (member) => member.waiting, whole),
    ...(hasCopies
      ? [{ name: "missed", title: "Missed writes", isFigure: true, by: missed, cell: missedWords }]
      : []),
    { name: "distance", title: "Distance", by: (member) => member.distance, cell: distance },
    { name: "act", title: ACTIONS, cell: button },
  ];
}

/**
 * @param {string} name
 * @param {string} title
 * @param {(member: Member) => number} by
 * @param {(value: number) => string} show
 * @returns {import("../table.js").Column<Member>}
 */
function figure(name, title, by, show) {
  return { name, title, isFigure: true, by, cell: (member) => show(by(member)) };
}

/** @param {Member} member */
function reason(member) {
  const { why, sinceMs } = reasonOf(member);
  if (!isOut(member)) return null;
  return h(
    "small",
    null,
    sinceMs ? `since ${clock(sinceMs)}` : "",
    why && `${sinceMs ? ": " : ""}${foreign(why)}`,
  );
}

/** @param {Member} member */
const missedOf = ({ missed_writes, copy }) => missed_writes ?? copy?.missed;

/** For sorting: everything is more than any number. @param {Member} member */
function missed(member) {
  const count = missedOf(member);
  return typeof count === "number" ? count : count === "everything" ? Infinity : 0;
}

/** @param {Member} member */
function missedWords(member) {
  const count = missedOf(member);
  return typeof count === "number" ? whole(count) : foreign(count ?? "", 20);
}

/** @param {Member} member */
function distance({ distance: far, zone, node, numa_nodes }) {
  const more = [node, zone, numa_nodes?.length ? `NUMA ${numa_nodes.join(", ")}` : ""]
    .filter(Boolean)
    .join(", ");
  return [foreign(far, 30).replaceAll("_", " "), more && h("small", null, foreign(more, 80))];
}

/** @param {Member} member */
function button({ pool, name, drains }) {
  const [word, act] = drains ? ["Undrain", undrain] : ["Drain", drain];
  return [
    h(
      "button",
      {
        onclick: () => act(pool, name),
        "aria-label": `${word} ${foreign(name, 80)} of ${foreign(pool, 60)}`,
      },
      word,
    ),
    isOrdered(pool, name) && h("small", null, "by this page"),
  ];
}
