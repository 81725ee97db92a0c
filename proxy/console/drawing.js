// The route tree as a drawing: from listeners at the left to servers at the right, with edges as wide as
// their traffic.

import { h } from "./element.js";
import { foreign, rough, short } from "./format.js";
import { BOX, layout } from "./layout.js";
import { isOut, mark, stateOf, tone } from "./state.js";

/** @typedef {import("./facts.js").Facts} Facts */
/** @typedef {import("./facts.js").Tree} Tree */
/** @typedef {import("./layout.js").Box} Box */
/** @typedef {import("./layout.js").Edge} Edge */

/** The widest edge. */
const WIDEST = 14;
/** Servers of a box that have a mark of their own. */
const MARKS = 24;

/**
 * @param {Tree} tree
 * @param {Facts} facts
 * @param {import("./way.js").Way} way
 */
export function drawing(tree, facts, way) {
  const { boxes, edges } = layout(tree, facts);
  const width = Math.max(...boxes.map((box) => box.x)) + BOX.width + 2;
  const height = Math.max(...boxes.map((box) => box.y)) + BOX.height + 2;
  const most = Math.max(1, ...edges.map((edge) => edge.rate));
  const label = `The route tree: ${tree.nodes.length} nodes. The table below has the same as text.`;
  const isAsked = way.nodes.size > 0;
  const isDoor = (/** @type {Box} */ box) => isAsked && box.key === `listener ${way.listener}`;
  const isLit = (/** @type {Box} */ box) => isDoor(box) || box.nodes.some((id) => way.nodes.has(id));
  const leads = (/** @type {Edge} */ { from, to }) =>
    isDoor(from) || from.nodes.some((id) => to.nodes.some((next) => way.edges.has(`${id} ${next}`)));
  const drawn = edges
    .map((edge) => ({ edge, isOn: leads(edge) }))
    .sort((a, b) => Number(a.isOn) - Number(b.isOn));
  return h(
    "div",
    {
      class: "scroll drawing",
      tabindex: "0",
      role: "region",
      "aria-label": "Drawing of the tree",
      key: "drawing",
    },
    h(
      "svg",
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": label,
        class: isAsked ? "asked" : "",
      },
      drawn.map(({ edge, isOn }) => drawEdge(edge, most, isOn)),
      boxes.map((box) => drawBox(box, facts, isLit(box))),
    ),
  );
}

/** @param {Edge} edge @param {number} most @param {boolean} isLit */
function drawEdge({ from, to, rate }, most, isLit) {
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x, to.y + BOX.height / 2];
  const bend = Math.max(30, (x2 - x1) / 2);
  const width = 1 + (WIDEST - 1) * Math.sqrt(rate / most);
  return h(
    "g",
    { key: `${from.key} ${to.key}`, class: isLit ? "edge lit" : "edge" },
    h("title", null, `${foreign(from.title, 80)} to ${foreign(to.title, 80)}`),
    h("path", {
      d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
      "stroke-width": width.toFixed(1),
    }),
  );
}

/** @param {Box} box @param {Facts} facts @param {boolean} isLit */
function drawBox({ key, x, y, title, more, rate, members }, facts, isLit) {
  const [only] = members.length === 1 ? members : [];
  const state = only && facts.members[only] ? stateOf(facts.members[only]) : undefined;
  const words = [title, more, state, rate > 0 ? `${rough(rate)} requests a second` : ""]
    .filter(Boolean)
    .join(", ");
  return h(
    "g",
    { key, class: isLit ? "box lit" : "box", transform: `translate(${x} ${y})` },
    h("title", null, foreign(words, 400)),
    h("rect", { width: BOX.width, height: BOX.height, rx: 3 }),
    state && h("g", { class: tone(state), transform: "translate(9 9)" }, mark(tone(state)).children),
    h("text", { x: state ? 24 : 9, y: 18, class: "title" }, short(title, state ? 23 : 25)),
    h("text", { x: 9, y: 35 }, short(more, 20)),
    rate > 0 && h("text", { x: BOX.width - 8, y: 35, "text-anchor": "end" }, `${rough(rate)}/s`),
    members.length > 1 && members.length <= MARKS && marks(members, facts),
  );
}

/** A mark for each server of a box. @param {string[]} members @param {Facts} facts */
function marks(members, facts) {
  const [side, step] = [5, 7];
  return members.map((name, at) => {
    const member = facts.members[name];
    if (!member) return null;
    // What is not up is only a frame, so that no colour has to be told apart.
    const place = { x: BOX.width - 8 - (members.length - at) * step, y: 9, width: side, height: side };
    return h("rect", {
      key: name,
      class: `server ${tone(stateOf(member))}${isOut(member) ? " open" : ""}`,
      ...place,
    });
  });
}
