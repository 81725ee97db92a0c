//! A run among others at the same server: keys of its own, and an early end.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::UNIX_EPOCH,
};

use anyhow::Result;
use signal_hook::{consts::SIGINT, flag};

/// memcached's longest key, less what a run appends: its name, and the numbers of its keys.
const LONGEST_PREFIX: usize = 200;

/// The text cannot begin the keys of a run; the caller of the program has to choose another one.
#[derive(Debug, thiserror::Error)]
#[error("not at most {LONGEST_PREFIX} visible ASCII characters")]
pub(crate) struct BadPrefix;

/// Reads the beginning of a run's keys.
pub(crate) fn prefix(text: &str) -> Result<String, BadPrefix> {
    let good = text.len() <= LONGEST_PREFIX && text.bytes().all(|byte| byte.is_ascii_graphic());
    good.then(|| text.to_owned()).ok_or(BadPrefix)
}

/// The prefix of this run's keys, which keeps values of earlier runs out.
pub(crate) fn own_prefix(prefix: &str) -> String {
    let name = UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos()) as u64;
    format!("{prefix}{name:x}:")
}

/// Becomes true with the first Ctrl-C. The second one ends the process.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // The second ends it as it would without this: the order of the two lines matters.
    flag::register_conditional_default(SIGINT, Arc::clone(&interrupted))?;
    flag::register(SIGINT, Arc::clone(&interrupted))?;
    Ok(interrupted)
}
