// The configuration in effect, and the one that was refused.

import { h } from "../element.js";
import { clock, foreign, lines, whole } from "../format.js";
import { mark } from "../state.js";

/** @typedef {import("../facts.js").Facts} Facts */

/** @param {Facts} facts */
export function configuration({ configuration: found }) {
  const { version, changed_ms, attempted_ms, refused, reloads, failures } = found;
  return h(
    "section",
    { key: "configuration" },
    h("h2", null, "Configuration"),
    h("p", null, "Version ", h("code", null, foreign(version, 60)), ` in effect since ${clock(changed_ms)}.`),
    refused && h("p", { class: "state" }, mark("bad"), `A change was refused at ${clock(attempted_ms)}:`),
    refused &&
      h(
        "pre",
        { class: "words", tabindex: "0", role: "region", "aria-label": "Why it was refused" },
        lines(refused),
      ),
    refused && h("p", { class: "note" }, "Until it is mended, a proxy that is started with it ends at once."),
    h(
      "p",
      { class: "note" },
      `Changed ${whole(reloads)} times since the start, refused ${whole(failures)} times.`,
    ),
  );
}
