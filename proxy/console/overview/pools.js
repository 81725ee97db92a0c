// Pools, and who waits for whom in them.

import { format } from "../address.js";
import { h } from "../element.js";
import { foreign, latency, rough, size } from "../format.js";
import { mark } from "../state.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** @param {Facts} facts */
export function pools(facts) {
  const rows = Object.entries(facts.pools);
  if (rows.length === 0) return null;
  return h(
    "section",
    { key: "pools" },
    h("h2", null, "Pools, and who waits"),
    table(
      "Pools, and who waits",
      [
        {
          name: "pool",
          title: "Pool",
          isRowHead: true,
          cell: ([name]) => h("a", { href: format("servers", { pool: name }) }, foreign(name, 60)),
        },
        {
          name: "up",
          title: "Up",
          cell: ([, pool]) =>
            h(
              "span",
              { class: "state" },
              mark(pool.up === pool.members ? "good" : pool.up ? "warn" : "bad"),
              `${pool.up} of ${pool.members}`,
            ),
        },
        { name: "rate", title: "Requests/s", isFigure: true, cell: ([, pool]) => rough(pool.rate) },
        {
          name: "p99",
          title: "p99",
          isFigure: true,
          cell: ([, pool]) => latency(pool.latency?.["10s"]?.p99_us),
        },
        {
          name: "held",
          title: "Held",
          isFigure: true,
          cell: ([, pool]) => latency(pool.waits?.held?.["10s"]?.p99_us),
        },
        {
          name: "queued",
          title: "Queued",
          isFigure: true,
          cell: ([, pool]) => latency(pool.waits?.queued?.["10s"]?.p99_us),
        },
        {
          name: "unsent",
          title: "Unsent",
          isFigure: true,
          cell: ([, pool]) => size(pool.waits?.unsent_bytes),
        },
      ],
      rows,
      ([name]) => name,
    ),
    h(
      "p",
      { class: "note" },
      "Held: until the pool can serve. Queued: for a connection. Unsent: what the servers have not taken.",
    ),
  );
}
