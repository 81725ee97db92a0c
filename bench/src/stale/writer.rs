//! Writing versions: the first of every key, and then one client's share of the rest.

use std::{net::SocketAddr, time::Instant};

use anyhow::{Result, bail};

use super::{Run, answer::Failure, ledger::Ledger, link::Link, options::Options, pools::Pools, value};

/// Sets the first version of every key wherever something is written or read.
///
/// # Errors
/// When an address does not answer, or one of `--write` refuses. One that is only read may refuse to be
/// written to.
pub(super) fn fill(options: &Options, keys: &[String]) -> Result<()> {
    for address in options.addresses() {
        let is_written = options.write.contains(&address);
        let mut link = Link::new(address, options);
        if is_written && let Err(failure) = link.create() {
            bail!("cannot make the table at {address}: {failure}");
        }
        for key in keys {
            let value = value::encode(key, Ledger::FIRST, options.value_size as usize);
            match link.fill(key, &value) {
                Ok(()) => {}
                Err(Failure::Refused(_)) if !is_written => break,
                Err(failure) => bail!("cannot set the first values at {address}: {failure}"),
            }
        }
    }
    Ok(())
}

/// Deletes the values of this run, where they do not expire. What cannot be deleted is left behind.
pub(super) fn clear(options: &Options, prefix: &str, keys: &[String]) {
    for address in &options.write {
        let _ = Link::new(*address, options).clear(prefix, keys);
    }
}

/// Writes the keys that are writer `number`'s in turn, until the run is over.
pub(super) fn run(run: &Run<'_>, number: u32) {
    let options = run.options;
    let pools = run.pools();
    let mut addresses = options.write.clone();
    // Writers begin at different addresses.
    addresses.rotate_left(number as usize % options.write.len());
    let to = if options.write_all { addresses.len() } else { 1 };
    for key in options.keys_of(number).cycle() {
        if run.is_over() {
            break;
        }
        let failed = write(run, &pools, &addresses[..to], key);
        addresses.rotate_left(1);
        run.pause(failed);
    }
}

/// Writes the next version of a key to each of these addresses; whether that failed at one of them.
pub(super) fn write(run: &Run<'_>, pools: &Pools<'_>, to: &[SocketAddr], key: u32) -> bool {
    let begun = Instant::now();
    let version = run.ledger.begin_write(key);
    let name = &run.keys[key as usize];
    let value = value::encode(name, version, run.options.value_size as usize);
    let mut failure = None;
    for &address in to {
        let answer = pools.with(address, |link| {
            link.set(name, &value)?;
            link.note(key, version);
            Ok(())
        });
        if let Err(why) = answer {
            failure.get_or_insert((address, why));
        }
    }
    match failure {
        Some((address, why)) => {
            run.ledger.fail(key, begun);
            run.tally.lock().write_failed(address, why);
            true
        }
        None => {
            let spell = run.ledger.acknowledge(key, version);
            run.tally.lock().acknowledged(spell);
            false
        }
    }
}
