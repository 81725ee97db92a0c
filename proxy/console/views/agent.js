// What the node agent tells.

import { h } from "../element.js";
import { foreign, whole } from "../format.js";
import { machineOf } from "../machine.js";
import { machineDrawing } from "../machine_drawing.js";
import { cacheTable, containerTable } from "../machine_tables.js";
import { sharing } from "../sharing.js";
import { mark } from "../state.js";

/** @type {import("../views.js").View} */
export const agent = {
  name: "agent",
  title: "Node agent",
  isThere: (facts) => facts.agent !== undefined,
  draw: ({ facts: { agent: found, members, process } }) => {
    if (!found) return null;
    const { is_up: isUp, machine: told, located } = found;
    // The machine has those as well that have no identity of the runtime.
    const containers = told ? told.containers.length + told.left_out : found.containers;
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
      told && machine(told, process.host),
      nodes(Object.values(members), process.host),
    ];
  },
};

/** What was found last: most times nothing has changed.
 * @type {{ told: import("../facts.js").Machine, found: import("../machine.js").Machine,
 *   shared: ReturnType<typeof sharing>, drawing: import("../element.js").Child } | undefined} */
let last;

/** @param {import("../facts.js").Machine} told @param {string} host */
function machine(told, host) {
  const { containers, left_out: leftOut } = told;
  if (last?.told !== told) {
    const found = machineOf(told);
    last = { told, found, shared: sharing(found, containers), drawing: machineDrawing(found) };
  }
  const { found, shared, drawing } = last;
  return h(
    "section",
    { key: "machine" },
    h("h2", null, `The CPUs of ${foreign(host, 60)}`),
    drawing,
    containers.some(({ cpus }) => !cpus) &&
      h("p", { class: "note" }, "Of some containers the agent tells the NUMA nodes only."),
    h("h2", null, "Containers, and who shares what"),
    containerTable(found, containers, shared),
    leftOut > 0 && h("p", { class: "note" }, `${whole(leftOut)} more have no room here.`),
    h("h2", null, "Caches and CPUs"),
    cacheTable(found),
  );
}

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
