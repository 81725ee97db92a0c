// The way of one request through the route tree.

/** @typedef {import("./facts.js").Explanation} Explanation */

/**
 * @typedef {object} Way
 * @property {string} listener  the number of the listener by which the request enters
 * @property {Set<number>} nodes
 * @property {Set<string>} edges  as `FROM TO`
 */

/**
 * A step leads on from the last one before it that is less deep.
 * @param {Explanation | undefined} explanation
 * @param {string} listener
 * @returns {Way}
 */
export function wayOf(explanation, listener) {
  const edges = new Set();
  /** @type {Map<number, number>} */
  const above = new Map();
  for (const { node, depth } of explanation?.steps ?? []) {
    const from = above.get(depth - 1);
    if (from !== undefined) edges.add(`${from} ${node}`);
    above.set(depth, node);
  }
  return { listener, nodes: new Set(explanation?.nodes), edges };
}
