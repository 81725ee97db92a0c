// Requests that change something. Where the proxy wants a token, it is asked for and kept in memory alone.

import { askForToken, tell } from "./ask.js";
import { lines } from "./format.js";
import { forget } from "./source.js";

let token = "";

/** Sends a request that changes something. `null`: nobody could show a token.
 * @param {string} method @param {string} path @param {object} [body] @returns {Promise<Response | null>} */
export async function send(method, path, body) {
  for (;;) {
    /** @type {Record<string, string>} */
    const headers = { "X-Proxima": "yes" };
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    const response = await fetch(path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      cache: "no-store",
    });
    const asks = response.status === 401 && response.headers.get("WWW-Authenticate")?.startsWith("Bearer");
    if (!asks) return response;
    token = await askForToken(lines(await response.text()));
    if (!token) return null;
  }
}

/** Does something that was asked for, and says so if the proxy refuses. Returns whether it is done.
 * @param {string} what @param {() => Promise<Response | null>} request */
export async function act(what, request) {
  try {
    const response = await request();
    if (response && !response.ok) await tell(`${what}: refused`, lines(await response.text()));
    forget();
    return response?.ok ?? false;
  } catch (error) {
    await tell(`${what}: not done`, String(error));
    return false;
  }
}
