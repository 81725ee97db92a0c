//! The processors that this process may use, and the one that has the least to do.

use std::{collections::HashMap, fs, thread, time::Duration};

use anyhow::{Context, Result, ensure};

/// Long enough to see a neighbour's load, short enough not to be noticed.
const OBSERVED: Duration = Duration::from_millis(300);

/// The processors that this process may run on, ascending.
pub(crate) fn allowed() -> Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    parse_list(list.context("/proc/self/status has no Cpus_allowed_list")?.trim())
}

/// The processor, of those allowed, that was idle most during a short look.
pub(crate) fn least_busy() -> Result<usize> {
    let allowed = allowed()?;
    ensure!(!allowed.is_empty(), "no processor is allowed");
    let before = busy_ticks(&fs::read_to_string("/proc/stat")?);
    thread::sleep(OBSERVED);
    let after = busy_ticks(&fs::read_to_string("/proc/stat")?);
    let used = |cpu: &usize| after.get(cpu).copied().unwrap_or(0) - before.get(cpu).copied().unwrap_or(0);
    // The last of several equals: the kernel's own work gathers on the first processor.
    Ok(allowed
        .iter()
        .copied()
        .rev()
        .min_by_key(used)
        .unwrap_or(allowed[0]))
}

/// Ticks that were neither idle nor waiting for a disk, by processor.
fn busy_ticks(stat: &str) -> HashMap<usize, u64> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok()?;
        // user nice system idle iowait irq softirq steal; guest time is part of user.
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        Some((
            cpu,
            ticks
                .iter()
                .enumerate()
                .filter(|(field, _)| !matches!(field, 3 | 4))
                .map(|(_, t)| t)
                .sum(),
        ))
    };
    // The first line, "cpu ", sums them all up; its first word is not a number of a processor.
    stat.lines().skip(1).filter_map(line).collect()
}

/// `0-2,5` → 0, 1, 2, 5.
fn parse_list(list: &str) -> Result<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>()?..=last.parse::<usize>()?);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_understood() {
        assert_eq!(parse_list("0").unwrap(), [0]);
        assert_eq!(parse_list("0-2,5,7-8").unwrap(), [0, 1, 2, 5, 7, 8]);
        assert!(parse_list("a-b").is_err());
    }

    #[test]
    fn idle_time_is_not_counted() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 1000 500 4 5 6 7 8\ncpu1 10 0 0 0 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(busy_ticks(stat), HashMap::from([(0, 21), (1, 10)]));
    }

    #[test]
    fn the_least_busy_processor_is_one_that_is_allowed() {
        assert!(allowed().unwrap().contains(&least_busy().unwrap()));
    }
}
