// Slow requests, and where their time went.

import { h } from "../element.js";
import { clock, foreign, latency, lines } from "../format.js";
import { read } from "../source.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").Slow} Slow */
/** @typedef {import("../facts.js").SlowRequest} SlowRequest */

const WIDTH = 160;

/** @type {import("../views.js").View} */
export const slow = {
  name: "slow",
  title: "Slow",
  // Where slow requests are not kept, the page says nothing of them.
  isThere: () => read("slow", 30_000).status === 200,
  draw: ({ address }) => {
    const { value, status, text } = read("slow", 2000);
    /** @type {Slow | null} */
    const found = value;
    return [
      h("h1", null, "Slow requests"),
      found
        ? h("p", null, `The last ${found.keep} that took over ${found.over_ms} ms.`)
        : h("p", { class: "words" }, status ? lines(text) : "…"),
      found &&
        table("Slow requests", columns(found), found.requests, keyOf, {
          address,
          sort: "-at",
          none: "None was slow.",
        }),
    ];
  },
};

/** @param {SlowRequest} request */
const keyOf = ({ at_ms, client, key, us }) => `${at_ms} ${client} ${us.total} ${key}`;

/** @param {Slow} found @returns {import("../table.js").Column<SlowRequest>[]} */
function columns({ requests }) {
  const most = Math.max(1, ...requests.map((request) => request.us.total));
  return [
    { name: "at", title: "At", by: (request) => request.at_ms, cell: (request) => clock(request.at_ms) },
    {
      name: "total",
      title: "Took",
      isFigure: true,
      by: (request) => request.us.total,
      cell: ({ us }) => latency(us.total),
    },
    { name: "steps", title: "Waited, server, answer", class: "hour", cell: ({ us }) => bar(us, most) },
    {
      name: "request",
      title: "Request",
      isRowHead: true,
      by: (request) => request.key,
      cell: ({ command, key }) => [h("strong", null, foreign(command, 40)), " ", foreign(key, 200)],
    },
    {
      name: "outcome",
      title: "Outcome",
      by: (request) => request.outcome,
      cell: ({ outcome }) => foreign(outcome, 60),
    },
    {
      name: "member",
      title: "Server",
      by: ({ pool, member }) => `${pool}/${member}`,
      cell: ({ pool, member }) => foreign(member ? `${pool}/${member}` : "none", 100),
    },
    {
      name: "client",
      title: "Client",
      by: (request) => request.client,
      cell: (request) => foreign(request.client, 60),
    },
  ];
}

/** @param {SlowRequest["us"]} us @param {number} most */
function bar({ waited, server, answer }, most) {
  const words = `waited ${latency(waited)}, server ${latency(server)}, answer ${latency(answer)}`;
  let x = 0;
  const part = (/** @type {number} */ micros, /** @type {string} */ kind, /** @type {number} */ height) => {
    const width = (micros / most) * WIDTH;
    x += width;
    return h("rect", {
      class: kind,
      x: (x - width).toFixed(1),
      width: width.toFixed(1),
      y: (10 - height) / 2,
      height,
    });
  };
  return [
    h(
      "svg",
      {
        class: "timeline",
        viewBox: `0 0 ${WIDTH} 10`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": words,
      },
      h("title", null, words),
      [part(waited, "warn", 4), part(server, "good", 10), part(answer, "quiet", 6)],
    ),
    h("small", null, words),
  ];
}
