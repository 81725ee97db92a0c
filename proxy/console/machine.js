// The machine of this proxy: sockets, NUMA nodes, caches and CPUs, as boxes in one another, and who is on
// them.

import { bit, cpusOf, listOf, setOf } from "./cpus.js";

/** @typedef {import("./facts.js").Machine} Told */
/** @typedef {import("./facts.js").MachineContainer} Container */

/**
 * A part of the machine.
 * @typedef {object} Box
 * @property {"machine" | "socket" | "numa" | "cache"} kind
 * @property {string} title
 * @property {bigint} cpus
 * @property {Box[]} parts  none: it has CPUs
 * @property {number[][]} cores  its CPUs, by core
 * @property {Tenant[]} tenants  those whose CPUs are in it, and not all in one of its parts
 */
/**
 * Whoever has CPUs: a container its own, or containers the same ones together.
 * @typedef {object} Tenant
 * @property {string} tag  a number for one that has its own, letters for those that share
 * @property {boolean} isShared
 * @property {bigint} cpus
 * @property {Container[]} containers
 */
/**
 * @typedef {object} Machine
 * @property {Box} whole
 * @property {Tenant[]} own
 * @property {Tenant[]} shared
 */

/** @param {Told} told @returns {Machine} */
export function machineOf(told) {
  const whole = boxes(told);
  const { own, shared } = tenants(told.containers);
  for (const tenant of [...own, ...shared]) homeOf(whole, tenant.cpus).tenants.push(tenant);
  return { whole, own, shared };
}

/** The smallest box with all these CPUs. @param {Box} box @param {bigint} cpus @returns {Box} */
export function homeOf(box, cpus) {
  const part = box.parts.find((part) => (part.cpus & cpus) === cpus);
  return part ? homeOf(part, cpus) : box;
}

/** All boxes without parts, each with those around it. @param {Box} box @param {Box[]} [around]
 * @returns {Box[][]} */
export const paths = (box, around = []) =>
  box.parts.length === 0
    ? [[...around, box]]
    : box.parts.flatMap((part) => paths(part, [...around, box]));

/** @param {Container} container */
export const nameOf = ({ namespace, pod, name }) =>
  [namespace ? `${namespace}/${pod}` : pod, name].filter(Boolean).join(" · ");

/** @param {Told} told */
function boxes({ nodes }) {
  /** @type {Map<string, Box[]>} */
  const sockets = new Map();
  for (const node of nodes) {
    const title = socketTitle(node.sockets);
    sockets.set(title, [...(sockets.get(title) ?? []), nodeBox(node)]);
  }
  return box(
    "machine",
    "This machine",
    [...sockets].map(([title, parts]) => box("socket", title, parts)),
  );
}

/** @param {number[]} sockets */
function socketTitle(sockets) {
  if (sockets.length === 0) return "Memory without a socket";
  return `${sockets.length === 1 ? "Socket" : "Sockets"} ${sockets.join(", ")}`;
}

/** @param {import("./facts.js").MachineNode} node @returns {Box} */
function nodeBox({ id, cpus: list, caches, cores: lists }) {
  const cpus = cpusOf(list);
  const siblings = new Map(lists.map(cpusOf).map((core) => [core[0], core]));
  const isSecond = new Set([...siblings.values()].flatMap((core) => core.slice(1)));
  const cores = cpus.filter((cpu) => !isSecond.has(cpu)).map((cpu) => siblings.get(cpu) ?? [cpu]);
  const within = (/** @type {bigint} */ set) => cores.filter(([cpu]) => set & bit(cpu));
  const parts = caches.map((list) => {
    const set = setOf(cpusOf(list));
    return box("cache", `Level 3 cache, CPUs ${list}`, [], set, within(set));
  });
  const rest = parts.reduce((set, part) => set & ~part.cpus, setOf(cpus));
  // The kernel may tell the cache of some CPUs only.
  if (parts.length > 0 && rest) parts.push(box("cache", `CPUs ${listOf(rest)}`, [], rest, within(rest)));
  return box("numa", `NUMA node ${id}`, parts, setOf(cpus), parts.length ? [] : cores);
}

/** @param {Box["kind"]} kind @param {string} title @param {Box[]} parts @param {bigint} [cpus]
 * @param {number[][]} [cores] @returns {Box} */
function box(kind, title, parts, cpus, cores = []) {
  const all = cpus ?? parts.reduce((set, part) => set | part.cpus, 0n);
  return { kind, title, parts, cpus: all, cores, tenants: [] };
}

/** @param {Container[]} containers */
function tenants(containers) {
  /** @type {Tenant[]} */
  const own = [];
  /** @type {Map<bigint, Container[]>} */
  const together = new Map();
  for (const container of containers) {
    const alone = setOf(cpusOf(container.own ?? ""));
    const others = setOf(cpusOf(container.cpus ?? "")) & ~alone;
    if (alone) own.push({ tag: "", isShared: false, cpus: alone, containers: [container] });
    if (others) together.set(others, [...(together.get(others) ?? []), container]);
  }
  const shared = [...together].map(([cpus, containers]) => ({ tag: "", isShared: true, cpus, containers }));
  own.sort(byFirst).forEach((tenant, at) => (tenant.tag = String(at + 1)));
  shared.sort(byFirst).forEach((tenant, at) => (tenant.tag = letters(at)));
  return { own, shared };
}

/** By the first CPU, and then with more CPUs first. @param {Tenant} a @param {Tenant} b */
function byFirst({ cpus: a }, { cpus: b }) {
  const [first, second] = [a & -a, b & -b];
  if (first !== second) return first < second ? -1 : 1;
  return a > b ? -1 : a < b ? 1 : 0;
}

/** A to Z, then AA and so on. @param {number} at @returns {string} */
const letters = (at) =>
  (at < 26 ? "" : letters(Math.floor(at / 26) - 1)) + String.fromCharCode(65 + (at % 26));
