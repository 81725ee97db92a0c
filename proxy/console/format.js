// Figures, times and foreign texts as people read them.

const NONE = "–";

/** @param {number | null | undefined} count */
export function whole(count) {
  return count === null || count === undefined ? NONE : Math.round(count).toLocaleString("en-GB");
}

/** A rate or another figure that need not be exact. @param {number | null | undefined} figure */
export function rough(figure) {
  if (figure === null || figure === undefined) return NONE;
  if (figure >= 1e6) return `${(figure / 1e6).toFixed(1)}M`;
  if (figure >= 1e4) return `${(figure / 1e3).toFixed(1)}k`;
  if (figure >= 10 || Number.isInteger(figure)) return whole(figure);
  return figure.toFixed(figure < 0.1 ? 2 : 1);
}

/** @param {number | null | undefined} share */
export function percent(share) {
  return share === null || share === undefined ? NONE : `${(share * 100).toFixed(1)} %`;
}

/** @param {number | null | undefined} micros */
export function latency(micros) {
  if (micros === null || micros === undefined) return NONE;
  if (micros >= 1e6) return `${(micros / 1e6).toFixed(2)} s`;
  if (micros >= 1e4) return `${Math.round(micros / 1e3)} ms`;
  return micros >= 1e3 ? `${(micros / 1e3).toFixed(1)} ms` : `${Math.round(micros)} µs`;
}

/** @param {number | null | undefined} bytes */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A time of day, with the day if it is not today. @param {number | null | undefined} ms */
export function clock(ms) {
  if (ms === null || ms === undefined) return NONE;
  const day = DAY.format(ms);
  return day === DAY.format(Date.now()) ? CLOCK.format(ms) : `${day} ${CLOCK.format(ms)}`;
}

// Controls, and what changes the direction of text or is not seen, so that a name cannot look like another
// one.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\uFFFD]/gu;

/** @param {string} text */
const seen = (text) => text.replace(UNSEEN, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);

/** A text that somebody else has chosen, at most so long and with everything in it to be seen.
 * @param {string | null | undefined} text @param {number} [most] */
export function foreign(text, most = 300) {
  const all = String(text ?? "");
  if (all.length <= most) return seen(all);
  return `${seen(all.slice(0, most))}… (${whole(all.length)} characters)`;
}

/** The same where there is no room for more. @param {string | null | undefined} text @param {number} most */
export function short(text, most) {
  const all = String(text ?? "");
  return all.length > most ? `${seen(all.slice(0, most - 1))}…` : seen(all);
}

/** The same for a text of several lines, which stay lines. @param {string | null | undefined} text */
export function lines(text) {
  const cut = String(text ?? "").trimEnd();
  return cut
    .split("\n")
    .slice(0, 200)
    .map((line) => foreign(line, 1000))
    .join("\n");
}
