// What the node agent tells.

import { h } from "../element.js";
import { foreign, whole } from "../format.js";
import { mark } from "../state.js";

/** @type {import("../views.js").View} */
export const agent = {
  name: "agent",
  title: "Node agent",
  isThere: (facts) => facts.agent !== undefined,
  draw: ({ facts: { agent: found, members, process } }) => {
    if (!found) return null;
    const { is_up: isUp, containers, located } = found;
    const words = isUp
      ? "It tells this proxy where containers are."
      : "It does not answer: distances are those of addresses.";
    const rows = [
      ["Containers on this node", whole(containers)],
      ["Clients found on a NUMA node", whole(located?.numa_node)],
      ["Clients found on a socket", whole(located?.socket)],
      ["Clients found on this host", whole(located?.host)],
    ];
    return [
      h("h1", null, "Node agent"),
      h("p", { class: "state" }, mark(isUp ? "good" : "bad"), words),
      h(
        "dl",
        { class: "pairs" },
        rows.map(([title, value]) => [h("dt", null, title), h("dd", null, value)]),
      ),
      nodes(Object.values(members), process.host),
    ];
  },
};

/** Which servers of this machine are on which NUMA node.
 * @param {import("../facts.js").Member[]} members @param {string} host */
function nodes(members, host) {
  /** @type {Map<number, string[]>} */
  const byNode = new Map();
  for (const { name, pool, numa_nodes: own } of members)
    for (const node of own ?? []) byNode.set(node, [...(byNode.get(node) ?? []), `${pool}/${name}`]);
  if (byNode.size === 0) return null;
  return h(
    "section",
    null,
    h("h2", null, `Servers by NUMA node of ${foreign(host, 60)}`),
    h(
      "ul",
      { class: "nodes" },
      [...byNode]
        .sort(([a], [b]) => a - b)
        .map(([node, names]) =>
          h(
            "li",
            { key: node },
            h("strong", null, `Node ${node}`),
            h(
              "ul",
              null,
              names.sort().map((name) => h("li", null, foreign(name, 100))),
            ),
          ),
        ),
    ),
  );
}
