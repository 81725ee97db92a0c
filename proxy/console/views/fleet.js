// The fleet as this proxy sees it: its view, who leads it, leases, and the links to the peers.

import { h } from "../element.js";
import { duration, foreign, rough, whole } from "../format.js";
import { mark } from "../state.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").Fleet} Fleet */
/** @typedef {import("../facts.js").Peer} Peer */

/** @type {import("../views.js").View} */
export const fleet = {
  name: "fleet",
  title: "Fleet",
  isThere: (facts) => facts.fleet !== undefined,
  draw: ({ facts, address }) => {
    const found = facts.fleet;
    if (!found) return null;
    return [
      h("h1", null, "Fleet"),
      found.alerts.map((alert) => h("p", { class: "state" }, mark("warn"), foreign(alert))),
      found.waits_for && h("p", { class: "state" }, mark("bad"), `Not joined: ${foreign(found.waits_for)}`),
      summary(found),
      h("h2", null, "Peers"),
      table("Peers", columns(found), found.peers, (peer) => peer.name, {
        address,
        none: "There is no peer.",
      }),
      links(found),
      copies(facts.members),
      removed(found),
    ];
  },
};

/** @param {Fleet} found */
function summary({
  name,
  view,
  why,
  leader,
  is_leader,
  term,
  lease_seconds,
  voters,
  candidates,
  commits,
  commit_seconds,
}) {
  const leads = leader ? foreign(leader, 80) : "nobody, or it is not known here";
  const rows = [
    ["This peer", foreign(name, 80)],
    ["View", `${view}: ${foreign(why)}`],
    ["Leader", `${leads}${is_leader ? " (this proxy)" : ""}, term ${term}`],
    [
      "Lease",
      lease_seconds > 0
        ? h("span", { class: "state" }, mark("good"), "this proxy has one")
        : h("span", { class: "state" }, mark("bad"), "this proxy has none"),
    ],
    [
      "Voters",
      Object.keys(voters)
        .map((one) => foreign(one, 60))
        .join(", ") || "–",
    ],
    ["Wait to join", candidates.map((one) => foreign(one, 60)).join(", ") || "nobody"],
    ["Changes proposed here", `${whole(commits)}, ${commits ? duration(commit_seconds) : "–"} to commit`],
  ];
  return h(
    "dl",
    { class: "pairs" },
    rows.map(([title, value]) => [h("dt", null, title), h("dd", null, value)]),
  );
}

/** @param {Fleet} found @returns {import("../table.js").Column<Peer>[]} */
function columns({ name }) {
  return [
    {
      name: "peer",
      title: "Peer",
      isRowHead: true,
      by: (peer) => peer.name,
      cell: (peer) => [foreign(peer.name, 80), peer.name === name && h("small", null, "this proxy")],
    },
    {
      name: "reached",
      title: "Reached",
      by: (peer) => Number(!peer.unreachable),
      cell: (peer) =>
        peer.unreachable
          ? [
              h("span", { class: "state" }, mark("bad"), "not reached"),
              h("small", null, foreign(peer.unreachable)),
            ]
          : h("span", { class: "state" }, mark("good"), "reached"),
    },
    {
      name: "round",
      title: "Round trip",
      isFigure: true,
      by: (peer) => peer.round_trip_ms ?? -1,
      cell: (peer) => (typeof peer.round_trip_ms === "number" ? `${rough(peer.round_trip_ms)} ms` : "–"),
    },
    {
      name: "decides",
      title: "Decides",
      cell: (peer) => (peer.decides ? "yes" : "not yet: its copies are repaired"),
    },
    {
      name: "since",
      title: "Since view",
      isFigure: true,
      by: (peer) => peer.since_view,
      cell: (peer) => peer.since_view,
    },
    { name: "copies", title: "Copies of", cell: (peer) => foreign(peer.copies.join(", "), 200) },
    {
      name: "heard",
      title: "Heard by the leader",
      isFigure: true,
      cell: (peer) =>
        typeof peer.heard_seconds_ago === "number" ? `${duration(peer.heard_seconds_ago)} ago` : "–",
    },
    { name: "address", title: "Address", cell: (peer) => foreign(peer.address, 80) },
  ];
}

/** The links: round trips as each peer tells them, and who complains of whom, as the leader knows it.
 * @param {Fleet} found */
function links({ name, peers, is_leader: isLeader }) {
  const names = peers.map((peer) => peer.name);
  const cell = (/** @type {Peer} */ from, /** @type {Peer} */ to) => {
    if (from === to) return h("td", { class: "same" }, "·");
    const isOwn = from.name === name;
    const isBroken = from.complains_of.includes(to.name) || (isOwn && to.unreachable);
    if (isBroken) return h("td", null, h("span", { class: "state" }, mark("bad"), "broken"));
    const took = from.round_trips_ms?.[to.name];
    if (typeof took === "number") return h("td", { class: "figure" }, `${rough(took)} ms`);
    return h("td", { class: "figure" }, isLeader ? "works" : "?");
  };
  return h(
    "section",
    null,
    h("h2", null, "Links, from a row to a column"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Links" },
      h(
        "table",
        { class: "matrix" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("td", null),
            names.map((each) => h("th", { scope: "col" }, foreign(each, 40))),
          ),
        ),
        h(
          "tbody",
          null,
          peers.map((from) =>
            h(
              "tr",
              { key: from.name },
              h("th", { scope: "row" }, foreign(from.name, 40)),
              peers.map((to) => cell(from, to)),
            ),
          ),
        ),
      ),
    ),
    h(
      "p",
      { class: "note" },
      "Time from a question to its answer, as each peer told last. ?: it has not told, as in a fleet of more " +
        `than 64. ${isLeader ? "" : "Who complains of whom is on the leader's page."}`,
    ),
  );
}

/** What copies have missed. @param {Record<string, import("../facts.js").Member>} members */
function copies(members) {
  const rows = Object.values(members).filter((member) => member.copy);
  if (rows.length === 0) return null;
  return h(
    "section",
    null,
    h("h2", null, "Copies, and what they have missed"),
    table(
      "Copies",
      [
        {
          name: "copy",
          title: "Copy",
          isRowHead: true,
          cell: ({ pool, name }) => foreign(`${pool}/${name}`, 100),
        },
        { name: "state", title: "State", cell: ({ copy }) => foreign(copy?.state, 30) },
        {
          name: "missed",
          title: "Missed writes",
          isFigure: true,
          cell: ({ copy }) => foreign(String(copy?.missed), 20),
        },
        { name: "why", title: "Why", class: "why", cell: ({ copy }) => foreign(copy?.why) },
      ],
      rows,
      ({ pool, name }) => `${pool}/${name}`,
    ),
  );
}

/** @param {Fleet} found */
function removed({ removed: rows }) {
  if (rows.length === 0) return null;
  return h(
    "section",
    null,
    h("h2", null, "Removed, the last one first"),
    h(
      "ul",
      null,
      [...rows]
        .reverse()
        .map(([name, why]) => h("li", null, h("strong", null, foreign(name, 80)), ` ${foreign(why)}`)),
    ),
  );
}
