//! What a process has used: processor time, memory, context switches. All read from `/proc`.

use std::{collections::HashMap, fs};

use anyhow::{Context, Result};

/// Processor time of every thread of a process at one moment.
pub(crate) struct CpuTime(HashMap<u32, u64>);

impl CpuTime {
    /// Reads `schedstat` of every thread: nanoseconds on a processor, kernel and user together, exact for a thread
    /// that is not running at this moment.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut threads = HashMap::new();
        for thread in thread_ids(pid)? {
            // A thread may end between the listing and the reading.
            if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")) {
                let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
                threads.insert(
                    thread,
                    nanoseconds.context("this kernel's schedstat has no run time")?,
                );
            }
        }
        Ok(Self(threads))
    }

    /// Nanoseconds used since `earlier`. The time of a thread that has ended in between is lost.
    pub(crate) fn since(&self, earlier: &Self) -> u64 {
        self.0
            .iter()
            .map(|(thread, time)| time - earlier.0.get(thread).copied().unwrap_or(0).min(*time))
            .sum()
    }
}

/// Resident memory, bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(status_field(&status, "VmRSS:").context("no VmRSS: is the process a kernel thread, or gone?")? * 1024)
}

/// Context switches of all threads so far: those that waited, and those that were taken from the processor.
pub(crate) fn switches(pid: u32) -> Result<(u64, u64)> {
    let (mut waited, mut preempted) = (0, 0);
    for thread in thread_ids(pid)? {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).unwrap_or_default();
        waited += status_field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
        preempted += status_field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
    }
    Ok((waited, preempted))
}

/// The first number of the line that begins with `name`.
fn status_field(status: &str, name: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

fn thread_ids(pid: u32) -> Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("no process {pid}"))?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_as_time_and_rest_does_not() {
        let me = std::process::id();
        let before = CpuTime::of(me).unwrap();
        // The test harness may run other tests in threads of this process: only a lower bound can be asserted.
        let mut sum = 0u64;
        for number in 0..20_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        std::thread::yield_now();
        assert!(CpuTime::of(me).unwrap().since(&before) > 1_000_000);
    }

    #[test]
    fn memory_and_switches_are_read() {
        let me = std::process::id();
        assert!(resident_bytes(me).unwrap() > 100_000);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(switches(me).unwrap().0 > 0);
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        assert!(CpuTime::of(u32::MAX).is_err());
        assert!(resident_bytes(u32::MAX).is_err());
    }
}
