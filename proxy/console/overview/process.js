// The process itself.

import { h } from "../element.js";
import { duration, size, whole } from "../format.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** @param {Facts} facts */
export function process({ process: own, embedded }) {
  const rows = [
    ["Program", `${own.program}, ${own.io}, ${own.workers} workers`],
    ["Runs for", duration((own.now_ms - own.started_ms) / 1000)],
    ["Processors used", own.cores?.toFixed(2) ?? "–"],
  ];
  if (own.buffers) rows.push(["Buffers", `${size(own.buffers.bytes)} of ${size(own.buffers.most)}`]);
  if (embedded) {
    const { items, bytes, limit_bytes } = embedded;
    rows.push(["Embedded store", `${whole(items)} items, ${size(bytes)} of ${size(limit_bytes)}`]);
  }
  return h(
    "section",
    { key: "process" },
    h("h2", null, "Process"),
    h(
      "dl",
      { class: "pairs" },
      rows.map(([title, value]) => [h("dt", null, title), h("dd", null, value)]),
    ),
  );
}
