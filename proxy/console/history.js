// The last 10 minutes: those of the proxy, and what this page has seen itself of what the proxy does not
// keep.

/** @typedef {import("./facts.js").Facts} Facts */

const POINTS = 120;
const NONE = {
  every_ms: 5000,
  until_ms: 0,
  requests: [],
  hit_ratio: [],
  p99_us: [],
  errors: [],
  clients: [],
};

/** @type {{ rss_bytes: (number | null)[], descriptors: (number | null)[] }} */
const own = { rss_bytes: [], descriptors: [] };
let seenMs = 0;

/** Notes what has come. @param {Facts} facts */
export function record({ history: told = NONE, process }) {
  if (process.now_ms - seenMs < told.every_ms) return;
  seenMs = process.now_ms;
  own.rss_bytes = [...own.rss_bytes, process.rss_bytes ?? null].slice(-POINTS);
  own.descriptors = [...own.descriptors, process.descriptors.open ?? null].slice(-POINTS);
}

/** @param {Facts} facts */
export const history = ({ history: told = NONE }) => ({ ...told, ...own });
