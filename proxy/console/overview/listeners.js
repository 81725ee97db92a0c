// Listeners, and how fast their clients are answered.

import { h } from "../element.js";
import { foreign, latency, rough, whole } from "../format.js";
import { table } from "../table.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** @param {Facts} facts */
export function listeners(facts) {
  return h(
    "section",
    { key: "listeners" },
    h("h2", null, "Listeners"),
    table(
      "Listeners",
      [
        { name: "address", title: "Address", isRowHead: true, cell: ([address]) => foreign(address, 80) },
        { name: "protocol", title: "Protocol", cell: ([, one]) => foreign(one.protocol, 20) },
        { name: "clients", title: "Clients", isFigure: true, cell: ([, one]) => whole(one.clients) },
        { name: "rate", title: "Requests/s", isFigure: true, cell: ([, one]) => rough(one.rate) },
        { name: "errors", title: "Errors/s", isFigure: true, cell: ([, one]) => rough(one.errors) },
        {
          name: "p50",
          title: "p50",
          isFigure: true,
          cell: ([, one]) => latency(one.latency?.["10s"]?.p50_us),
        },
        {
          name: "p99",
          title: "p99",
          isFigure: true,
          cell: ([, one]) => latency(one.latency?.["10s"]?.p99_us),
        },
        {
          name: "p999",
          title: "p99.9",
          isFigure: true,
          cell: ([, one]) => latency(one.latency?.["10s"]?.p999_us),
        },
      ],
      Object.entries(facts.listeners),
      ([address]) => address,
    ),
  );
}
