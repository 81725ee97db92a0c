// A report for somebody else: version, configuration, states and the last events as text.

import { open } from "./ask.js";
import { h } from "./element.js";
import { clock, duration, foreign, lines } from "./format.js";
import { reasonOf, stateOf } from "./state.js";
import { store } from "./store.js";

const EVENTS = 100;

/** Shows the report, and copies it. */
export async function showReport() {
  const text = await compose();
  const area = h("textarea", {
    readonly: true,
    rows: "20",
    cols: "100",
    "aria-label": "The report",
    value: text,
    autofocus: true,
  });
  const copied = h("p", { class: "note", id: "copied", role: "status" }, "");
  await open(
    "Copy for a report",
    [h("p", null, "Passwords and tokens are left out. Addresses, names and keys are in it."), area, copied],
    h("button", { type: "button", class: "strong", onclick: () => copy(text) }, "Copy"),
    { kind: "wide", end: "Close" },
  );
}

/** @param {string} text */
async function copy(text) {
  const area = /** @type {HTMLTextAreaElement} */ (document.querySelector("#dialogs textarea"));
  area.select();
  // Pages that come without TLS have no clipboard, and the older way instead.
  const isDone = navigator.clipboard
    ? await navigator.clipboard.writeText(text).then(
        () => true,
        () => document.execCommand("copy"),
      )
    : document.execCommand("copy");
  const words = isDone ? "Copied." : "The browser does not allow it: copy the marked text.";
  /** @type {HTMLElement} */ (document.getElementById("copied")).textContent = words;
}

async function compose() {
  const { facts, events } = store;
  if (!facts) return "Nothing is known yet.";
  const config = await fetch("config", { cache: "no-store" }).then((response) => response.text(), String);
  const { process, configuration } = facts;
  const members = Object.values(facts.members).map((member) => {
    const { why, sinceMs } = reasonOf(member);
    const since = sinceMs ? ` since ${clock(sinceMs)}` : "";
    const missed = member.copy ? `, missed ${member.copy.missed}` : "";
    const name = `${foreign(member.pool)}/${foreign(member.name)}`;
    return `${name}: ${stateOf(member)}${since}${missed} ${foreign(why)}`.trimEnd();
  });
  return [
    `proxima ${process.program} on ${foreign(process.host)}, io ${process.io}, ${process.workers} workers, ` +
      `up for ${duration((process.now_ms - process.started_ms) / 1000)}`,
    `at ${new Date(process.now_ms).toISOString()}: ${foreign(facts.health.sentence)}`,
    `configuration ${configuration.version} since ${clock(configuration.changed_ms)}`,
    configuration.refused ? `refused: ${lines(configuration.refused)}` : "",
    "",
    "Servers",
    ...members,
    "",
    `Events, the last ${EVENTS}`,
    ...events
      .slice(-EVENTS)
      .map((event) => `${new Date(event.at_ms).toISOString()} ${event.level} ${foreign(event.text)}`),
    "",
    "Configuration",
    // The text is bounded as the proxy bounds its configuration.
    config,
  ].join("\n");
}
