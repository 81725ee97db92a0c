// The last 10 minutes, as the proxy keeps them while somebody watches.

/** @typedef {import("./facts.js").History} History */

/** @type {History} */
const NONE = {
  every_ms: 5000,
  until_ms: 0,
  requests: [],
  hit_ratio: [],
  p99_us: [],
  errors: [],
  clients: [],
  rss_bytes: [],
  descriptors: [],
};

/** @param {import("./facts.js").Facts} facts */
export const history = ({ history: told }) => ({ ...NONE, ...told });
