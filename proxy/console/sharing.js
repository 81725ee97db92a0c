// Who shares CPUs, cores and caches with whom.

import { cpusOf, setOf } from "./cpus.js";
import { paths } from "./machine.js";

/** @typedef {import("./facts.js").MachineContainer} Container */
/** @typedef {import("./machine.js").Machine} Machine */

/**
 * What a container has in common with others. Each of them is in the first list that it belongs to.
 * @typedef {object} Sharing
 * @property {Container[]} cpus
 * @property {Container[]} cores
 * @property {Container[]} caches
 */

/** @param {Machine} machine @param {Container[]} containers @returns {Map<Container, Sharing>} */
export function sharing({ whole }, containers) {
  const leaves = paths(whole).map((path) => path[path.length - 1]);
  const cores = leaves.flatMap((leaf) => leaf.cores.map(setOf));
  const caches = leaves.filter(({ kind }) => kind === "cache").map(({ cpus }) => cpus);
  /** Those with the same CPUs share with the same others. @type {Map<string, Container[]>} */
  const groups = new Map();
  for (const container of containers)
    if (container.cpus) groups.set(container.cpus, [...(groups.get(container.cpus) ?? []), container]);
  const all = [...groups].map(([list, group]) => {
    const cpus = setOf(cpusOf(list));
    return { group, cpus, cores: touched(cores, cpus), caches: touched(caches, cpus) };
  });
  const found = new Map();
  for (const one of all) {
    /** @type {Sharing} */
    const with_ = { cpus: [], cores: [], caches: [] };
    for (const other of all) {
      if (other.cpus & one.cpus) with_.cpus.push(...other.group);
      else if (other.cores & one.cpus) with_.cores.push(...other.group);
      else if (other.caches & one.cpus) with_.caches.push(...other.group);
    }
    for (const container of one.group)
      found.set(container, { ...with_, cpus: with_.cpus.filter((other) => other !== container) });
  }
  return found;
}

/** All CPUs of the parts that have some of these. @param {bigint[]} parts @param {bigint} cpus */
const touched = (parts, cpus) => parts.reduce((set, part) => (part & cpus ? set | part : set), 0n);
