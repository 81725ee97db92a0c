// Servers of MySQL: roles, where each stands, the sessions that keep connections; the writer moves.

import { act, send } from "../act.js";
import { confirm } from "../ask.js";
import { h } from "../element.js";
import { clock, duration, foreign, latency, lines, whole } from "../format.js";
import { read } from "../source.js";
import { mark, stateWord } from "../state.js";
import { ACTIONS, table } from "../table.js";
import { askedFor } from "./slow.js";

/** @typedef {import("../facts.js").MysqlMember} MysqlMember */
/** @typedef {import("../facts.js").MysqlPool} MysqlPool */
/** @typedef {import("../facts.js").MysqlSession} MysqlSession */

/** @type {import("../views.js").View} */
export const mysql = {
  name: "mysql",
  title: "MySQL",
  isThere: (facts) => (facts.mysql?.pools.length ?? 0) > 0,
  draw: ({ facts }) => [
    h("h1", null, "MySQL"),
    (facts.mysql?.pools ?? []).map((pool) => drawPool(pool)),
    sessions(),
    facts.slow && slowest(),
  ],
};

/** @param {MysqlPool} pool */
function drawPool({ name, writer, has_roles: hasRoles, members }) {
  const words = writer
    ? h("span", { class: "state" }, mark("good"), `${foreign(writer, 80)} takes the writes.`)
    : h(
        "span",
        { class: "state" },
        mark(hasRoles ? "bad" : "quiet"),
        hasRoles ? "No server takes writes." : "Its servers have no roles.",
      );
  return h(
    "section",
    { key: name },
    h("h2", null, `Pool ${foreign(name, 60)}`),
    h("p", null, words),
    table(
      `Servers of ${foreign(name, 60)}`,
      [...COLUMNS, ...positions(hasRoles), ...moves(name, hasRoles)],
      members,
      (member) => member.name,
    ),
  );
}

/** @type {import("../table.js").Column<MysqlMember>[]} */
const COLUMNS = [
  {
    name: "server",
    title: "Server",
    isRowHead: true,
    cell: ({ name, address }) => [
      foreign(name, 80),
      name !== address && h("small", null, foreign(address, 80)),
    ],
  },
  {
    name: "role",
    title: "Role",
    cell: (member) => [
      stateWord(member.role ?? (member.is_up ? "up" : "ejected")),
      h("small", null, [since(member), foreign(member.role_why ?? member.why)].filter(Boolean).join(": ")),
    ],
  },
  { name: "connections", title: "Connections", isFigure: true, cell: (member) => whole(member.connections) },
  { name: "in_use", title: "In use", isFigure: true, cell: (member) => whole(member.in_use) },
  { name: "queued", title: "Queued", isFigure: true, cell: (member) => whole(member.queued) },
  { name: "waiting", title: "Under way", isFigure: true, cell: (member) => whole(member.waiting) },
];

/** @param {MysqlMember} member */
const since = ({ role_since: seconds }) => (typeof seconds === "number" ? `for ${duration(seconds)}` : "");

/** How far each server is, as it last told. @param {boolean} hasRoles
 * @returns {import("../table.js").Column<MysqlMember>[]} */
function positions(hasRoles) {
  // Only servers of a Galera cluster are asked for their status.
  const unknown = hasRoles ? "not told" : "not asked";
  return [
    {
      name: "position",
      title: "Position",
      isFigure: true,
      cell: ({ position }) => (position === undefined ? unknown : whole(position)),
    },
    {
      name: "lag",
      title: "Lag in writes",
      isFigure: true,
      cell: ({ unapplied }) => (unapplied === undefined ? unknown : whole(unapplied)),
    },
  ];
}

/** @param {string} pool @param {boolean} hasRoles @returns {import("../table.js").Column<MysqlMember>[]} */
function moves(pool, hasRoles) {
  if (!hasRoles) return [];
  const cell = (/** @type {MysqlMember} */ { name, role }) =>
    role !== "writer" && h("button", { onclick: () => move(pool, name) }, "Make it the writer");
  return [{ name: "act", title: ACTIONS, cell }];
}

/** @param {string} pool @param {string} member */
async function move(pool, member) {
  const isMeant = await confirm(
    `Move the writes of ${foreign(pool, 60)} to ${foreign(member, 80)}?`,
    [
      "New transactions and statements that write wait while those under way end; reads go on. Mostly that " +
        "is less than a tenth of a second, and no client gets an error. If something is under way for over " +
        "5 s, the writer stays, and what has waited goes on there.",
      "The order stands until it is taken back or this proxy ends. Other proxies need it as well.",
    ],
    "Move the writes",
  );
  if (isMeant)
    await act("Move", () => send("POST", `orders/writer?${new URLSearchParams({ pool, member })}`));
}

function sessions() {
  const { value, status, text } = read("mysql/sessions", 3000);
  /** @type {import("../facts.js").MysqlSessions | null} */
  const found = value;
  if (!found) return h("p", { class: "words" }, status ? lines(text) : "…");
  return h(
    "section",
    { key: "sessions" },
    h("h2", null, "Sessions, and what keeps their connection"),
    table(
      "Sessions",
      [
        { name: "number", title: "Number", isFigure: true, cell: (session) => session.number },
        { name: "user", title: "User", isRowHead: true, cell: (session) => foreign(session.user, 60) },
        { name: "client", title: "Client", cell: (session) => foreign(session.client ?? "a socket", 60) },
        { name: "schema", title: "Schema", cell: (session) => foreign(session.schema, 60) },
        {
          name: "state",
          title: "Kept by",
          cell: (session) => foreign(session.state, 60).replaceAll("_", " "),
        },
        {
          name: "server",
          title: "Server",
          cell: ({ connection }) => foreign(connection?.address ?? "none", 80),
        },
        {
          name: "seconds",
          title: "For",
          isFigure: true,
          cell: ({ connection }) => duration(connection?.seconds),
        },
        { name: "runs", title: "Runs", cell: ({ connection }) => (connection?.runs ? "a statement" : "") },
      ],
      found.sessions,
      (session) => session.number,
      { none: "No client is connected." },
    ),
    found.left_out > 0 && h("p", { class: "note" }, `${whole(found.left_out)} more have no room here.`),
  );
}

/** Statements of the same text that are told. */
const MOST_STATEMENTS = 20;

/** @typedef {{ text: string, count: number, most: number, last: number }} Statement */

/** The slow statements that are kept, those of one text as one. */
function slowest() {
  /** @type {import("../facts.js").SlowRequests | null} */
  const found = read("slow", 3000).value;
  /** @type {Map<string, Statement>} */
  const all = new Map();
  for (const request of found?.requests ?? []) {
    if (request.statement === undefined) continue;
    const text = askedFor(request);
    const { count, most, last } = all.get(text) ?? { count: 0, most: 0, last: 0 };
    const now = { count: count + 1, most: Math.max(most, request.us), last: Math.max(last, request.at_ms) };
    all.set(text, { text, ...now });
  }
  const statements = [...all.values()].sort((one, other) => other.most - one.most);
  return h(
    "section",
    { key: "slowest" },
    h("h2", null, "Slowest statements"),
    h("p", { class: "note" }, h("a", { href: "#/slow" }, "What each of them has waited for")),
    table("Slowest statements", STATEMENTS, statements.slice(0, MOST_STATEMENTS), ({ text }) => text, {
      none: "No statement was slow.",
    }),
  );
}

/** @type {import("../table.js").Column<Statement>[]} */
const STATEMENTS = [
  { name: "statement", title: "Statement", isRowHead: true, cell: ({ text }) => text },
  { name: "most", title: "Took at most", isFigure: true, cell: ({ most }) => latency(most) },
  { name: "count", title: "How often", isFigure: true, cell: ({ count }) => whole(count) },
  { name: "last", title: "Last", cell: ({ last }) => clock(last) },
];
