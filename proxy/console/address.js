// The address of what is seen: `#/servers?pool=cache&sort=rate`. Whoever gets it sees the same.

/**
 * @typedef {object} Address
 * @property {string} view
 * @property {Record<string, string>} values
 */

/** @param {string} hash @returns {Address} */
export function parse(hash) {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  return { view: path || "overview", values: Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {string} view @param {Record<string, string | undefined>} [values] */
export function format(view, values = {}) {
  const given = Object.entries(values).filter(([, value]) => value);
  const query = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
  return query ? `#/${view}?${query}` : `#/${view}`;
}

/** Changes values of the address, without a step of the browser's history.
 * @param {Address} address @param {Record<string, string | undefined>} values */
export function replace({ view, values: old }, values) {
  history.replaceState(null, "", format(view, { ...old, ...values }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
