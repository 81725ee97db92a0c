// Elements as descriptions, and a page that is made what they say. Text is only ever set as text.

/**
 * @typedef {object} Described
 * @property {string} tag
 * @property {Record<string, any>} attributes
 * @property {(Described | string)[]} children
 */
/** @typedef {Described | string | number | null | undefined | false | Child[]} Child */

const SVG = "http://www.w3.org/2000/svg";

/** What each node was made from. @type {WeakMap<Node, Described>} */
const made = new WeakMap();

/**
 * Describes an element. The attribute `key` names it among its siblings, so that it can move among them, and
 * those that begin with `on` are handlers.
 * @param {string} tag
 * @param {Record<string, any> | null} attributes
 * @param {...Child} children
 * @returns {Described}
 */
export function h(tag, attributes, ...children) {
  return { tag, attributes: attributes ?? {}, children: flat(children, []) };
}

/**
 * Makes the children of an element what is described, with the nodes that are there wherever they fit: focus,
 * selection and scroll positions stay.
 * @param {Element} parent
 * @param {Child} child
 */
export function draw(parent, child) {
  drawChildren(parent, flat([child], []));
}

/** @param {Child[]} children @param {(Described | string)[]} into */
function flat(children, into) {
  for (const child of children) {
    if (Array.isArray(child)) flat(child, into);
    else if (typeof child === "number") into.push(String(child));
    else if (child) into.push(child);
  }
  return into;
}

/** @param {Node} node */
const keyOf = (node) => made.get(node)?.attributes.key;

/** @param {Element} parent @param {(Described | string)[]} children */
function drawChildren(parent, children) {
  const keyed = keyedNodes(parent, children);
  // Nodes before `next` are drawn, those from it on are not yet.
  let next = parent.firstChild;
  for (const child of children) {
    const key = typeof child === "string" ? undefined : child.attributes.key;
    // A node with a key waits for its own description; the others are used in order.
    if (key === undefined) while (next && keyOf(next) !== undefined) next = next.nextSibling;
    const found = key === undefined ? next : keyed.get(key);
    const node = found && fits(found, child) ? drawNode(found, child) : create(parent, child);
    if (node === next) next = node.nextSibling;
    else parent.insertBefore(node, next);
  }
  while (next) {
    const left = next;
    next = next.nextSibling;
    left.remove();
  }
}

/** The nodes with keys that are still wanted. The others go at once, so that those behind them need not move.
 * @param {Element} parent @param {(Described | string)[]} children @returns {Map<string, ChildNode>} */
function keyedNodes(parent, children) {
  const keyed = new Map();
  const wanted = new Set(
    children.map((child) => (typeof child === "string" ? undefined : child.attributes.key)),
  );
  for (const node of [...parent.childNodes]) {
    const key = keyOf(node);
    if (key === undefined) continue;
    if (wanted.has(key)) keyed.set(key, node);
    else node.remove();
  }
  return keyed;
}

/** @param {Node} node @param {Described | string} child */
function fits(node, child) {
  if (typeof child === "string") return node.nodeType === Node.TEXT_NODE;
  return made.get(node)?.tag === child.tag;
}

/** @param {any} node @param {Described | string} child @returns {ChildNode} */
function drawNode(node, child) {
  if (typeof child === "string") {
    if (node.data !== child) node.data = child;
    return node;
  }
  const was = made.get(node);
  if (was === child) return node;
  setAttributes(node, was?.attributes ?? {}, child.attributes);
  made.set(node, child);
  drawChildren(node, child.children);
  return node;
}

/** @param {Element} parent @param {Described | string} child @returns {ChildNode} */
function create(parent, child) {
  if (typeof child === "string") return document.createTextNode(child);
  const isDrawing = child.tag === "svg" || parent.namespaceURI === SVG;
  const node = isDrawing ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  made.set(node, child);
  // Options come before the value of their list.
  drawChildren(node, child.children);
  setAttributes(node, {}, child.attributes);
  return node;
}

/** @param {any} node @param {Record<string, any>} was @param {Record<string, any>} now */
function setAttributes(node, was, now) {
  for (const name of Object.keys(was)) if (!(name in now)) setAttribute(node, name, null);
  for (const [name, value] of Object.entries(now)) if (was[name] !== value) setAttribute(node, name, value);
}

/** @param {any} node @param {string} name @param {any} value */
function setAttribute(node, name, value) {
  if (name === "key") return;
  if (name.startsWith("on")) node[name] = value;
  else if (name === "value") node.value = value ?? "";
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}
