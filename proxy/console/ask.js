// Dialogs: what is about to happen, and a token.

import { draw, h } from "./element.js";

/** @typedef {import("./element.js").Child} Child */

let count = 0;

/**
 * Opens a dialog, and returns the value of the button that ended it; empty: none.
 * @param {string} title
 * @param {Child} content
 * @param {Child} buttons
 * @param {{ kind?: string, end?: string }} [options]
 * @returns {Promise<{ value: string, form: FormData }>}
 */
export function open(title, content, buttons, { kind = "", end = "Cancel" } = {}) {
  const dialogs = /** @type {HTMLElement} */ (document.getElementById("dialogs"));
  const before = document.activeElement;
  draw(
    dialogs,
    h(
      "dialog",
      { key: ++count, class: kind, "aria-labelledby": "question" },
      h(
        "form",
        { method: "dialog" },
        h("h2", { id: "question" }, title),
        content,
        h("p", { class: "buttons" }, buttons, h("button", { value: "", formnovalidate: true }, end)),
      ),
    ),
  );
  const dialog = /** @type {HTMLDialogElement} */ (dialogs.firstChild);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      const form = new FormData(/** @type {HTMLFormElement} */ (dialog.firstChild));
      const value = dialog.returnValue;
      dialog.remove();
      if (before instanceof HTMLElement) before.focus();
      resolve({ value, form });
    };
  });
}

/**
 * Asks whether something is to be done.
 * @param {string} title
 * @param {string[]} effects
 * @param {string} verb
 */
export async function confirm(title, effects, verb) {
  const { value } = await open(
    title,
    effects.map((effect) => h("p", null, effect)),
    h("button", { value: "yes", class: "strong" }, verb),
  );
  return value === "yes";
}

/** Says that something was refused. @param {string} title @param {string} words */
export async function tell(title, words) {
  await open(title, h("p", { class: "words", role: "alert" }, words), null, { end: "Close" });
}

/** Asks for a token. @param {string} why @returns {Promise<string>} empty: none was given */
export async function askForToken(why) {
  const { value, form } = await open(
    "A token is needed",
    [
      h("p", { class: "words" }, why),
      h(
        "label",
        null,
        "Token ",
        h("input", { type: "password", name: "token", required: true, autocomplete: "off", autofocus: true }),
      ),
      h("p", { class: "note" }, "It is kept until this page is closed or loaded again, and nowhere else."),
    ],
    h("button", { value: "yes", class: "strong" }, "Use it"),
  );
  return value === "yes" ? String(form.get("token") ?? "").trim() : "";
}
