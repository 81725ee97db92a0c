// Listeners, and how fast their clients are answered.

import { h } from "../element.js";
import { foreign, latency, rough, size, whole } from "../format.js";
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
    h("p", { class: "note" }, readers(facts)),
  );
}

/** Who takes what is sent to them slowly. @param {Facts} facts */
function readers({ clients: { slow_readers: count, unread_bytes: bytes, unread_us: longest } }) {
  if (count === 0) return "All clients take what is sent to them.";
  return (
    `${whole(count)} of the clients have not taken ${size(bytes)} that were sent to them, the first of them ` +
    `for ${latency(longest)}: what they wait for is themselves.`
  );
}
