//! The resources that a process has used: processor time, memory, context switches. They are read from
//! `/proc`.

use std::{collections::HashMap, fs, time::Duration};

use anyhow::{Context, Result};

/// The resources of a process' threads up to one moment.
pub(crate) struct Usage(HashMap<u32, Thread>);

#[derive(Clone, Copy, Default)]
struct Thread {
    nanoseconds: u64,
    waits: u64,
    preemptions: u64,
}

/// The resources of a process between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceUsage {
    /// Time on a processor of all threads, kernel and user together. The time of a thread that has ended is
    /// lost.
    pub(crate) nanoseconds: u64,
    /// How often the thread that used most of it went to sleep. Housekeeping threads follow the clock, so
    /// their numbers would say nothing.
    pub(crate) waits: u64,
    /// How often that thread was preempted.
    pub(crate) preemptions: u64,
}

impl Usage {
    /// Reads `schedstat`, which is exact for threads that are not running at this moment, and `status`.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut threads = HashMap::new();
        for thread in thread_ids(pid)? {
            let read = |file| fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}"));
            // A thread may end between the listing and the reading.
            if let (Ok(schedstat), Ok(status)) = (read("schedstat"), read("status")) {
                let nanoseconds = schedstat
                    .split_whitespace()
                    .next()
                    .and_then(|word| word.parse().ok());
                let usage = Thread {
                    nanoseconds: nanoseconds.context("this kernel's schedstat has no run time")?,
                    waits: status_field(&status, "voluntary_ctxt_switches:").unwrap_or(0),
                    preemptions: status_field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0),
                };
                threads.insert(thread, usage);
            }
        }
        Ok(Self(threads))
    }

    /// The resources used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> ResourceUsage {
        let threads = self.0.iter().map(|(thread, now)| {
            let before = earlier.0.get(thread).copied().unwrap_or_default();
            ResourceUsage {
                nanoseconds: now.nanoseconds.saturating_sub(before.nanoseconds),
                waits: now.waits.saturating_sub(before.waits),
                preemptions: now.preemptions.saturating_sub(before.preemptions),
            }
        });
        let nanoseconds = threads.clone().map(|used| used.nanoseconds).sum();
        let busiest = threads.max_by_key(|used| used.nanoseconds).unwrap_or_default();
        ResourceUsage {
            nanoseconds,
            ..busiest
        }
    }
}

/// Resident memory, bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(status_field(&status, "VmRSS:").context("no VmRSS: is the process a kernel thread, or gone?")? * 1024)
}

/// The most memory that was resident at a time since [`forget_peak`], bytes.
///
/// # Errors
/// When the process has ended, even if its parent has not noticed yet.
pub(crate) fn peak_resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(status_field(&status, "VmHWM:").context("no VmHWM: the process has ended")? * 1024)
}

/// Resets the peak of resident memory. Where this is not allowed, the peak stays that since the start.
pub(crate) fn forget_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// For how long threads of a process were ready and did not get a processor so far, each by its number;
/// threads that run or wait at this moment are not counted up to now.
pub(crate) fn waited_for_processor(pid: u32) -> HashMap<u32, Duration> {
    let waited = |thread: u32| {
        let schedstat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        let nanoseconds = schedstat.split_whitespace().nth(1)?.parse().ok()?;
        Some((thread, Duration::from_nanos(nanoseconds)))
    };
    thread_ids(pid)
        .unwrap_or_default()
        .into_iter()
        .filter_map(waited)
        .collect()
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
        let before = Usage::of(me).unwrap();
        // The test harness may run other tests in threads of this process: only a lower bound can be
        // asserted.
        let mut sum = 0u64;
        for number in 0..20_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        std::thread::yield_now();
        assert!(Usage::of(me).unwrap().since(&before).nanoseconds > 1_000_000);
    }

    #[test]
    fn memory_is_read() {
        let me = std::process::id();
        assert!(resident_bytes(me).unwrap() > 100_000);
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        assert!(Usage::of(u32::MAX).is_err());
        assert!(resident_bytes(u32::MAX).is_err());
    }
}
