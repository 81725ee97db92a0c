// States as a mark and a word. The mark has a shape of its own, so that no colour has to be told apart.

import { h } from "./element.js";
import { foreign } from "./format.js";

/** @typedef {import("./facts.js").Member} Member */
/** @typedef {"good" | "warn" | "bad" | "quiet"} Tone */

/** @type {Record<Tone, string>} */
const SHAPES = {
  good: "M5 1a4 4 0 1 0 0 8a4 4 0 1 0 0-8z",
  warn: "M5 .5L9.8 9.2H.2z",
  bad: "M1 1h8v8h-8z",
  quiet: "M1 4h8v2h-8z",
};

/** @type {Record<string, Tone>} */
const TONES = {
  up: "good",
  serving: "good",
  current: "good",
  returned: "good",
  writer: "good",
  reader: "good",
  suspect: "warn",
  degraded: "warn",
  joining: "warn",
  opening: "warn",
  leaving: "warn",
  drains: "quiet",
  draining: "quiet",
  departed: "quiet",
  ejected: "bad",
  not_ready: "bad",
  out: "bad",
  warn: "warn",
  error: "bad",
  info: "quiet",
};

/** @param {string | undefined} state @returns {Tone} */
export const tone = (state) => TONES[(state ?? "").toLowerCase()] ?? "quiet";

/** @param {Tone} which */
export function mark(which) {
  return h(
    "svg",
    { class: `mark ${which}`, viewBox: "0 0 10 10", "aria-hidden": "true" },
    h("path", { d: SHAPES[which] }),
  );
}

/** @param {string | undefined} state */
export function stateWord(state) {
  return h("span", { class: "state" }, mark(tone(state)), foreign(state, 40).replaceAll("_", " "));
}

/** The state of a server in one word: that of its health, unless it is up and its copy or an order says more.
 * @param {Member} member */
export function stateOf(member) {
  if (member.state !== "up") return member.state;
  if (member.drains) return "drains";
  if (member.role === "out") return "out";
  if (member.copy?.departed) return "departed";
  return member.copy && member.copy.state !== "current" ? member.copy.state : "up";
}

/** Why a server is not simply up, and since when. @param {Member} member */
export function reasonOf(member) {
  const isCopy = member.state === "up" && member.copy && member.copy.state !== "current";
  return {
    why: (isCopy ? member.copy?.why : undefined) ?? member.why ?? member.role_why ?? "",
    sinceMs: (isCopy ? member.copy?.since_ms : undefined) ?? member.since_ms,
  };
}

/** Is this a server that somebody should look at? @param {Member} member */
export const isOut = (member) => stateOf(member) !== "up";
