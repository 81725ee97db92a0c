//! The number of threads that serve clients.

use std::{ops::RangeInclusive, thread};

use super::{error::OptionError, flags::Flags};
use crate::config::document::shortened;

/// The number of worker threads. `None`: one for each processor.
pub(super) fn workers(flags: &Flags) -> Result<Option<usize>, OptionError> {
    const LIMIT: RangeInclusive<usize> = 1..=1024;
    let multiplier = flags.text("core-multiplier");
    let multiplier: f64 = multiplier
        .parse()
        .ok()
        .filter(|multiplier: &f64| multiplier.is_finite())
        .ok_or_else(|| OptionError::Multiplier(shortened(&multiplier)))?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    if multiplier > 0.0 && processors as u64 >= flags.number("core-multiplier-threshold") {
        let workers = (processors as f64 * multiplier) as usize;
        return Ok(Some(workers.clamp(*LIMIT.start(), *LIMIT.end())));
    }
    let threads = flags.text("proxy-threads");
    let threads = match threads.as_str() {
        "auto" => return Ok(None),
        "" => flags.text("num-proxies"),
        _ => threads,
    };
    let threads = threads.parse().ok().filter(|threads| LIMIT.contains(threads));
    threads.map(Some).ok_or(OptionError::Threads)
}
