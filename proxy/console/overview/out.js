// Servers that somebody should look at.

import { format } from "../address.js";
import { h } from "../element.js";
import { clock, foreign } from "../format.js";
import { isOut, reasonOf, stateOf, stateWord } from "../state.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** Servers that are shown; the others are in a view of their own. */
const OUT = 12;

/** @param {Facts} facts */
export function out(facts) {
  const all = Object.values(facts.members).filter(isOut);
  if (all.length === 0) return null;
  return h(
    "section",
    { key: "out" },
    h("h2", null, `Out of order: ${all.length} of ${Object.keys(facts.members).length} servers`),
    table(
      "Servers that are out of order",
      [
        { name: "state", title: "State", cell: (member) => stateWord(stateOf(member)) },
        {
          name: "server",
          title: "Server",
          isRowHead: true,
          cell: (member) =>
            h(
              "a",
              { href: format("servers", { q: member.name, pool: member.pool }) },
              foreign(`${member.pool}/${member.name}`, 80),
            ),
        },
        { name: "since", title: "Since", cell: (member) => clock(reasonOf(member).sinceMs) },
        { name: "why", title: "Why", class: "why", cell: (member) => foreign(reasonOf(member).why) },
      ],
      all.slice(0, OUT),
      (member) => `${member.pool}/${member.name}`,
    ),
    all.length > OUT &&
      h("p", { class: "note" }, h("a", { href: "#/servers?state=out" }, `All ${all.length}`)),
  );
}
