// Slow requests, and what each of them has waited for.

import { h } from "../element.js";
import { clock, foreign, latency, lines, whole } from "../format.js";
import { read } from "../source.js";
import { mark } from "../state.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").SlowRequest} SlowRequest */
/** @typedef {import("../facts.js").SlowRequests} SlowRequests */
/** @typedef {import("../facts.js").SlowStep} SlowStep */

/** The width of a drawing, for the whole time of its request. */
const WIDTH = 120;
/** The height of a step in it. */
const HEIGHT = 4;

/** @type {import("../views.js").View} */
export const slow = {
  name: "slow",
  title: "Slow",
  isThere: (facts) => facts.slow !== undefined,
  draw: ({ facts, address }) => {
    const { value, status, text } = read("slow", 3000);
    /** @type {SlowRequests | null} */
    const found = value;
    return [
      h("h1", null, "Slow requests"),
      h(
        "p",
        null,
        `${whole(facts.slow?.count)} since the start took ${latency(facts.slow?.over_us)} or longer. `,
        found && `The last ${whole(found.keep)} are kept.`,
      ),
      found
        ? table("Slow requests", COLUMNS, found.requests, (one) => one.number, {
            address,
            sort: "",
            none: "No request was slow.",
          })
        : h("p", { class: "words" }, status ? lines(text) : "…"),
    ];
  },
};

/** What was asked for, as far as it may be told. @param {SlowRequest} request */
export const askedFor = ({ key, statement }) => foreign(statement ?? key, 200);

/** @type {import("../table.js").Column<SlowRequest>[]} */
const COLUMNS = [
  {
    name: "at",
    title: "Answered",
    by: (request) => request.at_ms,
    cell: ({ at_ms: at }) => h("time", { datetime: new Date(at).toISOString() }, clock(at)),
  },
  {
    name: "request",
    title: "Request",
    isRowHead: true,
    by: (request) => request.command,
    cell: (request) => [request.command, h("small", null, askedFor(request))],
  },
  { name: "took", title: "Took", isFigure: true, by: (request) => request.us, cell: ({ us }) => latency(us) },
  { name: "steps", title: "Waited for", cell: drawSteps },
  {
    name: "client",
    title: "Client",
    by: (request) => request.client ?? "",
    cell: ({ client, listener }) => [
      foreign(client ?? "a socket", 60),
      h("small", null, `at ${foreign(listener, 60)}`),
    ],
  },
  {
    name: "outcome",
    title: "Outcome",
    by: (request) => request.outcome,
    cell: ({ outcome, weight }) => [
      outcome,
      weight > 1 && h("small", null, `one of ${whole(weight)} was looked at`),
    ],
  },
];

/** @param {SlowStep} step */
function words({ waited_for: what, route, pool, server, outcome, why }) {
  if (what === "connection") return "a connection";
  if (what === "pool") return "the state of its pool";
  if (what === "route") return `route ${foreign(route, 60)}`;
  const name = server ? [pool, server].filter(Boolean).join(" ") : "an answer";
  return `${foreign(name, 100)}: ${foreign(why ?? outcome, 100)}`;
}

/** @param {SlowRequest} request */
function drawSteps({ us, steps, more_steps: hasMore }) {
  const x = (/** @type {number} */ micros) => (WIDTH * micros) / Math.max(us, 1);
  return [
    h(
      "svg",
      {
        class: "steps",
        viewBox: `0 0 ${WIDTH} ${Math.max(steps.length, 1) * HEIGHT}`,
        preserveAspectRatio: "none",
        height: steps.length * HEIGHT,
        "aria-hidden": "true",
      },
      steps.map(({ from_us: from, us: took, why }, at) =>
        h("rect", {
          class: why ? "bad" : "quiet",
          x: x(from).toFixed(1),
          width: Math.max(x(took), 0.5).toFixed(1),
          y: at * HEIGHT,
          height: HEIGHT - 1,
        }),
      ),
    ),
    h(
      "ol",
      { class: "steps" },
      steps.map((step) =>
        h("li", null, step.why && mark("bad"), `${words(step)}, `, h("b", null, latency(step.us))),
      ),
      hasMore && h("li", null, "and more"),
    ),
  ];
}
