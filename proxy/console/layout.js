// Where the parts of the route tree stand: columns by the longest way from a listener, rows by the order of
// leaves.

/** @typedef {import("./facts.js").Facts} Facts */
/** @typedef {import("./facts.js").Tree} Tree */
/** @typedef {import("./facts.js").TreeNode} TreeNode */

export const BOX = { width: 176, height: 44 };
const GAP = { x: 60, y: 12 };
/** Servers below one route that have a box each; more of them are one box. */
const APART = 6;

/**
 * @typedef {object} Box
 * @property {string} key
 * @property {number} x
 * @property {number} y
 * @property {string} title
 * @property {string} more
 * @property {number} rate  requests a second
 * @property {number[]} nodes  the nodes that it stands for; none: it is a listener
 * @property {string[]} members  the servers that it stands for, as `POOL/NAME`
 */
/** @typedef {{ from: Box, to: Box, rate: number }} Edge */

/** @param {Tree} tree @param {Facts} facts @returns {{ boxes: Box[], edges: Edge[] }} */
export function layout(tree, facts) {
  const nodes = new Map(tree.nodes.map((node) => [node.id, node]));
  const depths = depthsOf(tree, nodes);
  /** @type {Map<number, Box>} */
  const placed = new Map();
  /** @type {Box[]} */
  const boxes = [];
  /** @type {Edge[]} */
  const edges = [];
  let row = 0;

  /**
   * A box stands in the middle of those that it has brought with it, or in a row of its own.
   * @param {Box} box
   * @param {Box[]} brought
   */
  const put = (box, brought) => {
    const last = brought[brought.length - 1];
    box.y = last ? (brought[0].y + last.y) / 2 : row++ * (BOX.height + GAP.y) + 1;
    boxes.push(box);
    return box;
  };
  const rateOf = (/** @type {number} */ id) => facts.edges?.[id] ?? 0;

  /** @param {number} id @returns {Box} */
  const place = (id) => {
    const found = placed.get(id);
    if (found) return found;
    const node = nodes.get(id) ?? { id, handle: "?", children: [] };
    const box = boxOf(node, depths.get(id) ?? 1, rateOf(id));
    placed.set(id, box);
    const brought = [];
    for (const group of groups(node, nodes)) {
      const isNew = !placed.has(group[0]);
      const to = group.length > 1 && isNew ? placeTogether(group, box) : place(group[0]);
      if (isNew) brought.push(to);
      // How much of what comes to a node comes from which one above it is not known, but for this bound.
      edges.push({ from: box, to, rate: to.nodes.length > 1 ? to.rate : Math.min(to.rate, rateOf(id)) });
    }
    return put(box, brought);
  };

  /** @param {number[]} group @param {Box} above */
  const placeTogether = (group, above) => {
    const box = together(
      group.flatMap((child) => nodes.get(child) ?? []),
      above,
      rateOf,
    );
    for (const child of group) placed.set(child, box);
    return put(box, []);
  };

  for (const { address, number, protocol, root } of tree.listeners) {
    const rate = facts.listeners[address]?.rate ?? 0;
    const door = {
      key: `listener ${number}`,
      x: 1,
      y: 0,
      title: address,
      more: protocol,
      rate,
      nodes: [],
      members: [],
    };
    const isNew = !placed.has(root);
    const to = place(root);
    edges.push({ from: door, to, rate });
    put(door, isNew ? [to] : []);
  }
  return { boxes, edges };
}

/** @param {number} depth */
const columnAt = (depth) => depth * (BOX.width + GAP.x) + 1;

/** @param {TreeNode} node @param {number} depth @param {number} rate @returns {Box} */
function boxOf({ id, handle, pool, member }, depth, rate) {
  const isMember = pool !== undefined && member !== undefined;
  const [title, more] = isMember ? [member, pool] : [handle, ""];
  const members = isMember ? [`${pool}/${member}`] : [];
  return { key: `node ${id}`, x: columnAt(depth), y: 0, title, more, rate, nodes: [id], members };
}

/**
 * One box for many servers.
 * @param {TreeNode[]} members
 * @param {Box} above
 * @param {(id: number) => number} rateOf
 */
function together(members, above, rateOf) {
  const [{ pool = "" }] = members;
  const nodes = members.map((member) => member.id);
  return {
    key: `servers of ${above.key}`,
    x: above.x + BOX.width + GAP.x,
    y: 0,
    title: pool,
    more: `${members.length} servers`,
    rate: nodes.reduce((sum, id) => sum + rateOf(id), 0),
    nodes,
    members: members.map((member) => `${member.pool}/${member.member}`),
  };
}

/** The children of a node, with many servers of one pool in one group.
 * @param {TreeNode} node @param {Map<number, TreeNode>} nodes @returns {number[][]} */
function groups({ children }, nodes) {
  /** @type {Map<string, number[]>} */
  const byPool = new Map();
  for (const child of children) {
    const pool = nodes.get(child)?.pool;
    const name = pool === undefined ? `node ${child}` : `pool ${pool}`;
    byPool.set(name, [...(byPool.get(name) ?? []), child]);
  }
  return [...byPool.values()].flatMap((group) =>
    group.length > APART ? [group] : group.map((child) => [child]),
  );
}

/** @param {Tree} tree @param {Map<number, TreeNode>} nodes */
function depthsOf(tree, nodes) {
  /** @type {Map<number, number>} */
  const depths = new Map();
  /** @param {number} id @param {number} depth */
  const deepen = (id, depth) => {
    if ((depths.get(id) ?? 0) >= depth || depth > nodes.size) return;
    depths.set(id, depth);
    for (const child of nodes.get(id)?.children ?? []) deepen(child, depth + 1);
  };
  for (const listener of tree.listeners) deepen(listener.root, 1);
  return depths;
}
