// Small lines of the last minutes.

import { h } from "./element.js";

const WIDTH = 240;
const HEIGHT = 36;

/** A line of figures, the newest at the right. `null` is a gap. Its words say what the line shows.
 * @param {(number | null)[]} values @param {string} label @param {(value: number) => string} format */
export function line(values, label, format) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0);
  const words = known.length
    ? `${label}: between ${format(Math.min(...known))} and ${format(most)}`
    : `${label}: nothing is known yet`;
  const frame = {
    class: "line",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
  };
  const path = shape(values, most || 1);
  return h(
    "svg",
    { ...frame, "aria-label": words },
    h("title", null, words),
    h("path", { class: "area", d: path.area }),
    h("path", { class: "stroke", d: path.stroke }),
  );
}

/** @param {(number | null)[]} values @param {number} most */
function shape(values, most) {
  const step = WIDTH / 119;
  const left = WIDTH - (values.length - 1) * step;
  let stroke = "";
  let area = "";
  let begun = -1;
  const x = (/** @type {number} */ at) => (left + at * step).toFixed(1);
  values.forEach((value, at) => {
    if (value !== null) {
      const y = (HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1);
      stroke += `${begun < 0 ? "M" : "L"}${x(at)} ${y}`;
      area += begun < 0 ? `M${x(at)} ${HEIGHT}L${x(at)} ${y}` : `L${x(at)} ${y}`;
      if (begun < 0) begun = at;
    }
    const ends = begun >= 0 && (value === null || at === values.length - 1);
    if (ends) {
      area += `L${x(value === null ? at - 1 : at)} ${HEIGHT}Z`;
      begun = -1;
    }
  });
  return { stroke, area };
}
