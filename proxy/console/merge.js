// JSON Merge Patch (RFC 7396).

/** The document after a patch. What the patch does not touch is shared with the one before.
 * @param {any} document @param {any} patch @returns {any} */
export function merge(document, patch) {
  if (!isObject(patch)) return patch;
  const merged = isObject(document) ? { ...document } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else set(merged, name, merge(merged[name], value));
  }
  return merged;
}

/**
 * Servers and keys have any name, `__proto__` as well.
 * @param {object} target
 * @param {string} name
 * @param {any} value
 */
function set(target, name, value) {
  Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
