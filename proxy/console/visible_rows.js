// Of very many rows only those are made that are near the window.

/** Fewer rows than this are all made. */
const MANY = 150;
/** The height of a row among many, as in parts.css. */
const HEIGHT = 46;
/** Rows that are made above the window and below it. */
const MORE = 12;

/** The first row to be made, and the one behind the last, with the height of what is left out.
 * @param {number} count @param {Element | null} body  the rows as they are now */
export function visibleRows(count, body) {
  if (count <= MANY) return null;
  const above = -(body?.getBoundingClientRect().top ?? 0);
  const first = Math.min(Math.max(0, Math.floor(above / HEIGHT) - MORE), count - 1);
  const end = Math.min(count, first + Math.ceil(innerHeight / HEIGHT) + 2 * MORE);
  return { first, end, before: first * HEIGHT, behind: (count - end) * HEIGHT };
}
