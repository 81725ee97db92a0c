// Servers that drain because this page orders it. Such an order ends by itself after a minute, so the page
// repeats it for as long as it is open.

import { act, send } from "./act.js";
import { confirm } from "./ask.js";
import { foreign } from "./format.js";

const NAME = "console";
const TIME = "60s";

/** Tells when the orders are to be repeated, from the first one on. @type {Worker | null} */
let ticker = null;

/** The members that this page drains, by pool. @type {Map<string, Set<string>>} */
const ordered = new Map();

/** @param {string} pool */
const pathOf = (pool) => `pools/${encodeURIComponent(pool)}/orders/${NAME}`;

/**
 * The members that the order names now, whoever has given it.
 * @param {string} pool
 * @returns {Promise<string[]>}
 */
async function named(pool) {
  const response = await fetch(pathOf(pool), { cache: "no-store" });
  return response.ok ? ((await response.json()).order?.drain ?? []) : [];
}

/** @param {string} pool @param {string[]} drain */
function order(pool, drain) {
  return drain.length ? send("PUT", pathOf(pool), { drain, for: TIME }) : send("DELETE", pathOf(pool));
}

/** @param {string} pool @param {string} member */
export async function drain(pool, member) {
  const isMeant = await confirm(
    `Drain ${foreign(member, 80)}?`,
    [
      "This proxy gives it no new requests; those that it has are answered. Clients notice nothing while " +
        `the other servers of ${foreign(pool, 80)} can take its share. What only this server keeps is ` +
        "missed meanwhile.",
      "The page repeats the order while it is open. A minute after it is closed the server serves again.",
    ],
    "Drain",
  );
  if (!isMeant) return;
  const isDone = await act("Drain", async () => order(pool, [...new Set([...(await named(pool)), member])]));
  if (!isDone) return;
  ordered.set(pool, (ordered.get(pool) ?? new Set()).add(member));
  ticker ??= new Worker(new URL("ticker.js", import.meta.url));
  ticker.onmessage = repeat;
}

/** @param {string} pool @param {string} member */
export async function undrain(pool, member) {
  const isMeant = await confirm(
    `Give ${foreign(member, 80)} requests again?`,
    ["Its share of the requests goes back to it at once. Clients miss what it has lost if it was restarted."],
    "Undrain",
  );
  if (!isMeant) return;
  ordered.get(pool)?.delete(member);
  await act("Undrain", async () => {
    const others = (await named(pool)).filter((name) => name !== member);
    return order(pool, others);
  });
}

/** Is this order this page's own? @param {string} pool @param {string} member */
export const isOrdered = (pool, member) => ordered.get(pool)?.has(member) ?? false;

/** Repeats the orders. What another page has taken back is not ordered again. */
async function repeat() {
  for (const [pool, members] of ordered) {
    const now = await named(pool).catch(() => null);
    if (now === null) continue;
    for (const member of members) if (!now.includes(member)) members.delete(member);
    if (members.size) await order(pool, now).catch(() => null);
    else ordered.delete(pool);
  }
}

addEventListener("beforeunload", (event) => {
  if ([...ordered.values()].some((members) => members.size)) event.preventDefault();
});
