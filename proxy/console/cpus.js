// Sets of CPUs, as numbers with a bit for each CPU.

/** The CPUs of a list such as `0-3,8`, in its order. @param {string} list */
export function cpusOf(list) {
  const cpus = [];
  for (const part of list ? list.split(",") : []) {
    const [first, last = first] = part.split("-").map(Number);
    for (let cpu = first; cpu <= last; cpu++) cpus.push(cpu);
  }
  return cpus;
}

/** @param {number[]} cpus */
export const setOf = (cpus) => cpus.reduce((set, cpu) => set | bit(cpu), 0n);

/** @param {number} cpu */
export const bit = (cpu) => 1n << BigInt(cpu);

/** A set as a list such as `0-3,8`. @param {bigint} set */
export function listOf(set) {
  /** @type {[number, number][]} */
  const ranges = [];
  for (let cpu = 0; set > 0n; cpu++, set >>= 1n) {
    if (!(set & 1n)) continue;
    const last = ranges.at(-1);
    if (last && last[1] === cpu - 1) last[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(",");
}

/** How many CPUs it has. @param {bigint} set */
export function countOf(set) {
  let count = 0;
  for (; set > 0n; set &= set - 1n) count++;
  return count;
}
