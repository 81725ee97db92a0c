// The page: its head, its menu, and the view that the address names.

import { parse } from "./address.js";
import { draw } from "./element.js";
import { header, menu, news } from "./frame.js";
import { store } from "./store.js";
import { follow } from "./stream.js";
import { VIEWS } from "./views.js";

/** @param {string} id */
const place = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

let seen = "";
let isDue = false;

function drawPage() {
  isDue = false;
  const address = parse(location.hash);
  const views = VIEWS.filter((view) => store.facts && view.isThere(store.facts));
  const view = views.find(({ name }) => name === address.view) ?? views[0];
  draw(place("header"), header(store));
  draw(place("menu"), menu(views, view));
  if (store.facts && view) {
    draw(place("content"), view.draw({ facts: store.facts, events: store.events, address }));
    document.title = `${view.title} · ${store.facts.process.node ?? store.facts.process.host} · Proxima`;
  }
  const words = news(store);
  if (place("news").textContent !== words) place("news").textContent = words;
  if (view && seen && seen !== view.name) {
    place("content").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  seen = view?.name ?? seen;
}

/** Draws with the next frame, however much has changed. */
function due() {
  if (!isDue) requestAnimationFrame(drawPage);
  isDue = true;
}

addEventListener("changed", due);
addEventListener("hashchange", due);
// Of many rows those are made that are near the window.
addEventListener("scroll", due, { passive: true });
addEventListener("resize", due);
// How long something lasts is told anew, also without news.
setInterval(due, 1000);
due();
follow();
