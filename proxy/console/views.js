// All views, in the order of the menu.

import { agent } from "./views/agent.js";
import { events } from "./views/events.js";
import { fleet } from "./views/fleet.js";
import { mysql } from "./views/mysql.js";
import { near } from "./views/near.js";
import { overview } from "./views/overview.js";
import { servers } from "./views/servers.js";
import { slow } from "./views/slow.js";
import { tree } from "./views/tree.js";

/**
 * @typedef {object} Context
 * @property {import("./facts.js").Facts} facts
 * @property {import("./facts.js").Event[]} events
 * @property {import("./address.js").Address} address
 */
/**
 * @typedef {object} View
 * @property {string} name  in the address
 * @property {string} title
 * @property {(facts: import("./facts.js").Facts) => boolean} isThere  whether the process has a part for it
 * @property {(context: Context) => import("./element.js").Child} draw
 */

/** @type {View[]} */
export const VIEWS = [overview, tree, servers, fleet, near, mysql, slow, agent, events];
