// What somebody has set otherwise than the configuration says.

import { h } from "../element.js";
import { foreign } from "../format.js";
import { mark } from "../state.js";

/** @typedef {import("../facts.js").Facts} Facts */
/** @typedef {import("../facts.js").NearRule} NearRule */

/** @param {Facts} facts */
export function byHand({ near }) {
  const rules = (near?.rules ?? []).filter((rule) => Object.keys(rule.configured).length > 0);
  if (rules.length === 0) return null;
  return h(
    "section",
    { key: "by hand" },
    h("h2", null, "Set otherwise than the file says"),
    h(
      "ul",
      { class: "plain" },
      rules.map((rule) => h("li", { key: rule.name }, words(rule))),
    ),
  );
}

/** @param {NearRule} rule */
function words({ name, on, settings, configured }) {
  const differs = Object.entries(configured).map(
    ([setting, value]) => `${setting} is ${foreign(settings[setting], 30)} and not ${foreign(value, 30)}`,
  );
  const effect = on ? "" : "off, so that all its reads go to the servers: ";
  return [
    mark("warn"),
    h("a", { href: "#/near" }, `Near cache, rule ${foreign(name, 60)}`),
    `: ${effect}${differs.join(", ")}`,
  ];
}
