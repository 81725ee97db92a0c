// The machine as boxes in one another. The tables below the drawing have the same as text.

import { bit, countOf, listOf } from "./cpus.js";
import { h } from "./element.js";
import { foreign, short, whole } from "./format.js";
import { nameOf } from "./machine.js";

/** @typedef {import("./machine.js").Box} Box */
/** @typedef {import("./machine.js").Machine} Machine */
/** @typedef {import("./machine.js").Tenant} Tenant */

/** Colours, which come again where there are more containers: the number tells those apart. */
const COLOURS = 8;
/** Names of containers that share CPUs; the others are counted. */
const NAMES = 4;
/** Marks of a box; the others are counted. */
const MARKS = 40;

/** @param {Machine} machine */
export function machineDrawing({ whole: box, own, shared }) {
  const sockets = box.parts.filter(({ kind }) => kind === "socket").length;
  const label =
    `The machine: ${sockets} sockets with ${countOf(box.cpus)} CPUs. ` +
    "The tables below have the same as text.";
  // The narrowest of several is the one that tells most.
  const narrow = [...shared].sort((a, b) => countOf(a.cpus) - countOf(b.cpus));
  const at = (/** @type {number} */ cpu) => {
    const has = (/** @type {Tenant} */ { cpus }) => (cpus & bit(cpu)) !== 0n;
    return own.find(has) ?? narrow.find(has);
  };
  return h(
    "div",
    { class: "machine", role: "img", "aria-label": label, key: "machine" },
    marks(box.tenants),
    box.parts.map((part) => drawBox(part, at)),
    h(
      "p",
      { class: "key" },
      [tag("1", "own c0"), "a container's own CPUs"],
      [tag("A", "shared"), "CPUs that containers share"],
      [tag("\u00a0", "free"), "CPUs that none has"],
    ),
  );
}

/** @param {Box} box @param {(cpu: number) => Tenant | undefined} at @returns {import("./element.js").Child} */
function drawBox(box, at) {
  const { kind, title, parts, cores, tenants, cpus } = box;
  return h(
    "div",
    { class: kind },
    h("p", { class: "title" }, title, kind === "numa" && !cpus && h("small", null, "memory only")),
    parts.length > 0 &&
      h(
        "div",
        { class: "parts" },
        parts.map((part) => drawBox(part, at)),
      ),
    cores.length > 0 &&
      h(
        "div",
        { class: "cores" },
        cores.map((core) => drawCore(core, at)),
      ),
    marks(tenants),
  );
}

/** @param {number[]} core @param {(cpu: number) => Tenant | undefined} at */
function drawCore(core, at) {
  return h(
    "span",
    { class: "core" },
    core.map((cpu) => {
      const tenant = at(cpu);
      const who = tenant ? tenant.containers.slice(0, NAMES).map(nameOf).join(", ") : "free";
      return h(
        "span",
        { class: `cpu ${looks(tenant)}`, title: `CPU ${cpu}: ${foreign(who, 200)}` },
        h("small", null, cpu),
        tenant?.tag ?? "",
      );
    }),
  );
}

/** Who has CPUs in a box, by name. @param {Tenant[]} tenants */
function marks(tenants) {
  if (tenants.length === 0) return null;
  return h(
    "ul",
    { class: "marks" },
    tenants.slice(0, MARKS).map((tenant) => {
      const { containers, cpus, isShared } = tenant;
      const names = containers.slice(0, NAMES).map((container) => short(nameOf(container), 48));
      const more = containers.length - names.length;
      if (more > 0) names.push(`${whole(more)} more`);
      return h(
        "li",
        { key: tenant.tag },
        tag(tenant.tag, looks(tenant)),
        h(
          "span",
          null,
          names.join(", "),
          h("small", null, `${isShared ? "shared" : "own"} CPUs ${listOf(cpus)}`),
        ),
      );
    }),
    tenants.length > MARKS && h("li", { key: "more" }, `${whole(tenants.length - MARKS)} more`),
  );
}

/** @param {string} text @param {string} looks */
export const tag = (text, looks) => h("span", { class: `tag ${looks}` }, text);

/** The classes of a tenant's colour. @param {Tenant | undefined} tenant */
export function looks(tenant) {
  if (!tenant) return "free";
  return tenant.isShared ? "shared" : `own c${(Number(tenant.tag) - 1) % COLOURS}`;
}
