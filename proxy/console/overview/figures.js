// The figures of the last ten minutes.

import { line } from "../chart.js";
import { h } from "../element.js";
import { latency, percent, rough, size, whole } from "../format.js";
import { history } from "../history.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** @param {Facts} facts */
export function figures(facts) {
  const { rates, clients, process } = facts;
  const past = history(facts);
  const asked = (rates.hits ?? 0) + (rates.misses ?? 0);
  const figure = (
    /** @type {string} */ title,
    /** @type {string} */ value,
    /** @type {(number | null)[]} */ values,
    /** @type {(value: number) => string} */ show,
    /** @type {string} */ more = "",
  ) =>
    h(
      "div",
      { class: "figure" },
      h("dt", null, title),
      h("dd", null, h("strong", null, value), more && h("small", null, more), line(values, title, show)),
    );
  return h(
    "dl",
    { class: "figures", "aria-label": "The last 10 minutes" },
    figure("Requests a second", rough(rates.requests), past.requests, rough),
    figure("Hit ratio", percent(asked ? (rates.hits ?? 0) / asked : null), past.hit_ratio, percent),
    figure("99 of 100 within", latency(facts.latency?.["10s"]?.p99_us), past.p99_us, latency),
    figure("Errors a second", rough(rates.errors), past.errors, rough),
    figure("Clients", whole(clients.open), past.clients, whole, `of ${whole(clients.most)}`),
    figure("Memory", size(process.rss_bytes), past.rss_bytes, size),
    figure(
      "Descriptors",
      whole(process.descriptors.open),
      past.descriptors,
      whole,
      `of ${whole(process.descriptors.most)}`,
    ),
  );
}
