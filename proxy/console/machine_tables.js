// The machine as tables: its containers and what they share, and its caches with who is on them.

import { cpusOf, listOf, setOf } from "./cpus.js";
import { h } from "./element.js";
import { foreign, whole } from "./format.js";
import { homeOf, nameOf, paths } from "./machine.js";
import { looks, tag } from "./machine_drawing.js";
import { table } from "./table.js";

/** @typedef {import("./facts.js").MachineContainer} Container */
/** @typedef {import("./machine.js").Box} Box */
/** @typedef {import("./machine.js").Machine} Machine */
/** @typedef {import("./sharing.js").Sharing} Sharing */
/** @typedef {import("./machine.js").Tenant} Tenant */

/** Names in a cell, and those with CPUs in a cache; the others are counted. */
const NAMES = 3;
const TENANTS = 40;
const NONE = "–";

/** The containers, and who shares what.
 * @param {Machine} machine @param {Container[]} containers @param {Map<Container, Sharing>} shared */
export function containerTable(machine, containers, shared) {
  const tagsOf = (/** @type {Container} */ container) =>
    [...machine.own, ...machine.shared].filter((tenant) => tenant.containers.includes(container));
  return table(
    "Containers",
    [
      {
        name: "container",
        title: "Container",
        isRowHead: true,
        cell: (one) => [
          tagsOf(one).map((tenant) => tag(tenant.tag, looks(tenant))),
          foreign(nameOf(one), 200),
        ],
      },
      { name: "place", title: "Where", cell: (one) => placeOf(machine, one) },
      { name: "own", title: "Own CPUs", class: "cpus", cell: (one) => foreign(one.own ?? NONE) },
      { name: "others", title: "Shared CPUs", class: "cpus", cell: others },
      { name: "with", title: "Shares CPUs with", cell: (one) => names(shared.get(one)?.cpus) },
      { name: "core", title: "Only a core with", cell: (one) => names(shared.get(one)?.cores) },
      { name: "cache", title: "Only a cache with", cell: (one) => names(shared.get(one)?.caches) },
    ],
    containers,
    (one) => containers.indexOf(one),
    { none: "There are none.", class: "containers" },
  );
}

/** Each cache with who is on it. @param {Machine} machine */
export function cacheTable({ whole: box, own, shared }) {
  const cell = (/** @type {Tenant[]} */ all) => (/** @type {Box[]} */ path) => {
    const { cpus } = path[path.length - 1];
    const found = all.filter((tenant) => tenant.cpus & cpus);
    if (found.length === 0) return NONE;
    return h(
      "ul",
      { class: "plain" },
      found.slice(0, TENANTS).map((tenant) =>
        h(
          "li",
          { key: tenant.tag },
          tag(tenant.tag, looks(tenant)),
          names(tenant.containers),
          h("small", null, `CPUs ${listOf(tenant.cpus & cpus)}`),
        ),
      ),
      found.length > TENANTS && h("li", { key: "more" }, `${whole(found.length - TENANTS)} more`),
    );
  };
  const rows = paths(box);
  const title = (/** @type {Box["kind"]} */ kind) => (/** @type {Box[]} */ path) =>
    path.find((box) => box.kind === kind)?.title ?? "not told";
  return table(
    "Caches and CPUs",
    [
      { name: "socket", title: "Socket", cell: title("socket") },
      { name: "node", title: "NUMA node", isRowHead: true, cell: title("numa") },
      { name: "cache", title: "Cache", cell: title("cache") },
      {
        name: "cpus",
        title: "CPUs",
        class: "cpus",
        cell: (path) => listOf(path[path.length - 1].cpus) || "none: memory only",
      },
      { name: "own", title: "Have their own here", cell: cell(own) },
      { name: "shared", title: "Share here", cell: cell(shared) },
    ],
    rows,
    (path) => rows.indexOf(path),
    { class: "containers" },
  );
}

/** @param {Machine} machine @param {Container} container */
function placeOf({ whole }, { cpus, nodes }) {
  if (!cpus) return `NUMA nodes ${nodes.join(", ")}`;
  const { kind, title } = homeOf(whole, setOf(cpusOf(cpus)));
  return kind === "machine" ? "Anywhere on this machine" : title;
}

/** @param {Container} container */
function others({ cpus, own }) {
  if (!cpus) return "not told";
  return listOf(setOf(cpusOf(cpus)) & ~setOf(cpusOf(own ?? ""))) || NONE;
}

/** @param {Container[]} [containers] */
function names(containers = []) {
  if (containers.length === 0) return NONE;
  const some = containers.slice(0, NAMES).map((container) => foreign(nameOf(container), 100));
  const more = containers.length - some.length;
  return [...some, ...(more > 0 ? [`${whole(more)} more`] : [])].join(", ");
}
