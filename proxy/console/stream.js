// The stream of facts. One that is cut is taken up again after a pause.

import { addEvents, connectionIs, patchFacts, replaceFacts } from "./store.js";

/** The shortest pause and the longest one, in ms. */
const PAUSE = [500, 5000];
/** A stream without a word for so long is cut: it has one each second. */
const SILENCE = 10_000;

/** Cuts the stream that is under way. */
let cut = new AbortController();
// A browser has few connections to one place, and must keep none for pages that nobody sees.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) cut.abort(new Error("the page was not seen"));
});

async function seen() {
  while (document.hidden)
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

/** Follows the stream for ever. */
export async function follow() {
  let [pause] = PAUSE;
  for (;;) {
    await seen();
    const begun = Date.now();
    const why = await once().catch((error) => String(error.message ?? error));
    connectionIs(false, why);
    // A stream that lasted was a good one.
    pause = Date.now() - begun > PAUSE[1] ? PAUSE[0] : Math.min(pause * 2, PAUSE[1]);
    await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random() / 2)));
  }
}

/** Reads one stream to its end, and returns why it ended. */
async function once() {
  cut = new AbortController();
  let timer = setTimeout(() => cut.abort(new Error("nothing was heard")), SILENCE);
  try {
    const response = await fetch("watch?with=samples", { signal: cut.signal, cache: "no-store" });
    if (!response.ok || !response.body) return (await response.text()).trim() || `status ${response.status}`;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return "the stream was cut";
      clearTimeout(timer);
      timer = setTimeout(() => cut.abort(new Error("nothing was heard")), SILENCE);
      for (const { name, data } of parser.parse(value)) {
        if (name === "end") return String(JSON.parse(data).why);
        take(name, data);
      }
    }
  } finally {
    clearTimeout(timer);
    cut.abort();
  }
}

/** @param {string} name @param {string} data */
function take(name, data) {
  if (name === "state") {
    replaceFacts(JSON.parse(data));
    connectionIs(true);
    // What happened before, and while there was no stream.
    fetchEvents().catch(() => {
      // The stream is cut as well, and the next one asks again.
    });
  } else if (name === "change") {
    patchFacts(JSON.parse(data));
  } else if (name === "log") {
    addEvents([JSON.parse(data)]);
  }
}

async function fetchEvents() {
  const response = await fetch("events", { cache: "no-store" });
  if (response.ok) addEvents((await response.json()).events);
}

/** Server-sent events in pieces of any size. */
class Parser {
  #rest = "";

  /** The events that end in this piece. @param {string} piece */
  parse(piece) {
    const blocks = (this.#rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map((block) => {
      const fields = block.split("\n").map((line) => line.split(/: ?(.*)/s));
      /** @param {string} wanted */
      const all = (wanted) => fields.filter(([name]) => name === wanted).map(([, value]) => value ?? "");
      return { name: all("event")[0] ?? "message", data: all("data").join("\n") };
    });
  }
}
