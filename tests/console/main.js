// A browser that does what it is told. Each line that comes is a command as JSON, and each has a line as
// answer. Arguments: the program of the browser, and a folder for its profile.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const [, , program, folder] = process.argv;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const browser = await puppeteer.launch({
  executablePath: program,
  userDataDir: folder,
  // Root has no sandbox, and containers have a small /dev/shm. What is opened here is our own page.
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const page = await browser.newPage();

/** What the page has complained of: errors of scripts, and what its policy has refused. */
let complaints = [];
page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
page.on("console", (message) => {
  // The stream that a test cuts is told as a failed request.
  if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
    complaints.push(message.text());
});
// The page asks before it is left while it keeps servers drained.
page.on("dialog", (dialog) => dialog.accept());
/** Where requests have gone. */
let asked = new Set();
page.on("request", (request) => asked.add(new URL(request.url()).host));

const COMMANDS = {
  async open({ url, width = 1200, height = 800, scheme = "light" }) {
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    // Another document, also where only the part behind # differs.
    await page.goto("about:blank");
    [complaints, asked] = [[], new Set()];
    await page.goto(url);
  },
  evaluate: ({ code }) => page.evaluate(code),
  fill: ({ selector, text }) => page.locator(selector).fill(text),
  press: ({ key }) => page.keyboard.press(key),
  screenshot: ({ path }) => page.screenshot({ path }).then(() => null),
  async axe() {
    // The page's policy allows no script but its own; the browser's own world has none.
    await page.evaluate(AXE);
    const { violations } = await page.evaluate("axe.run()");
    return violations.map(({ id, impact, help, nodes }) => ({
      id,
      impact,
      help,
      html: nodes.map((node) => node.html),
    }));
  },
  async complaints() {
    const found = complaints;
    complaints = [];
    return found;
  },
  async asked() {
    const found = [...asked];
    asked = new Set();
    return found;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...values } = JSON.parse(line);
  const answer = await Promise.resolve(COMMANDS[command](values)).then(
    (value) => ({ value: value ?? null }),
    (error) => ({ error: String(error.stack ?? error) }),
  );
  console.log(JSON.stringify(answer));
}
await browser.close();
