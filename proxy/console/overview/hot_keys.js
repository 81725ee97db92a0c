// Keys that are asked for most.

import { format } from "../address.js";
import { h } from "../element.js";
import { foreign, percent, rough } from "../format.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** Keys of each pool that are shown. */
const KEYS = 8;

/** @param {Facts} facts */
export function hotKeys(facts) {
  const rows = Object.entries(facts.hot_keys ?? {}).flatMap(([pool, keys]) =>
    keys.slice(0, KEYS).map((hot) => ({ pool, ...hot })),
  );
  if (rows.length === 0) return null;
  return h(
    "section",
    { key: "hot" },
    h("h2", null, "Hot keys"),
    table(
      "Hot keys",
      [
        {
          name: "key",
          title: "Key",
          isRowHead: true,
          cell: (hot) =>
            h("a", { href: format("tree", { key: hot.key.slice(0, 250) }) }, foreign(hot.key, 80)),
        },
        { name: "pool", title: "Pool", cell: (hot) => foreign(hot.pool, 40) },
        { name: "rate", title: "Requests/s", isFigure: true, cell: (hot) => rough(hot.rate) },
        { name: "share", title: "Share of its pool", isFigure: true, cell: (hot) => percent(hot.share) },
      ],
      rows,
      (hot) => `${hot.pool} ${hot.key}`,
    ),
  );
}
