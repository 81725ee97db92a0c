//! Writing versions: the first of every key, and then one client's share of the rest.

use std::{collections::BTreeSet, net::SocketAddr, time::Instant};

use anyhow::{Result, bail};

use super::{Run, answer::Failure, ledger::Ledger, link::Link, options::Options, value};

/// Sets the first version of every key wherever something is written or read.
///
/// # Errors
/// When an address does not answer, or one of `--write` refuses. One that is only read may refuse to be
/// written to.
pub(super) fn fill(options: &Options, keys: &[String]) -> Result<()> {
    let everywhere: BTreeSet<SocketAddr> = options.write.iter().chain(&options.read).copied().collect();
    for address in everywhere {
        let mut link = Link::new(address, options);
        if options.write.contains(&address)
            && let Err(Failure::Refused(words) | Failure::Lost(words) | Failure::Wrong(words)) = link.create()
        {
            bail!("cannot make the table at {address}: {words}");
        }
        for key in keys {
            let value = value::encode(key, Ledger::FIRST, options.value_size as usize);
            match link.set(key, options.ttl.as_secs(), &value) {
                Ok(()) => {}
                Err(Failure::Refused(_)) if !options.write.contains(&address) => break,
                Err(Failure::Refused(words) | Failure::Lost(words) | Failure::Wrong(words)) => {
                    bail!("cannot set the first values at {address}: {words}")
                }
            }
        }
    }
    Ok(())
}

/// Deletes the values of this run, where they do not expire. What cannot be deleted is left behind.
pub(super) fn clear(options: &Options, prefix: &str) {
    for address in &options.write {
        let _ = Link::new(*address, options).delete(prefix);
    }
}

/// Writes the keys that are writer `number`'s in turn, until the run is over.
pub(super) fn run(run: &Run<'_>, number: u32) {
    let options = run.options;
    let mut links: Vec<Link> = options
        .write
        .iter()
        .map(|address| Link::new(*address, options))
        .collect();
    // Writers begin at different addresses.
    links.rotate_left(number as usize % options.write.len());
    let own = (number..options.keys).step_by(options.writers as usize);
    for key in own.cycle() {
        if run.is_over() {
            break;
        }
        let begun = Instant::now();
        let version = run.ledger.begin_write(key);
        let name = &run.keys[key as usize];
        let value = value::encode(name, version, options.value_size as usize);
        let to = if options.write_all { links.len() } else { 1 };
        let mut failure = None;
        for link in &mut links[..to] {
            if let Err(why) = link.set(name, options.ttl.as_secs(), &value) {
                failure.get_or_insert((link.address, why));
            }
        }
        links.rotate_left(1);
        let failed = failure.is_some();
        match failure {
            Some((address, why)) => {
                run.ledger.fail(key, begun);
                run.tally.lock().write_failed(address, why);
            }
            None => {
                let spell = run.ledger.acknowledge(key, version);
                run.tally.lock().acknowledged(spell);
            }
        }
        run.pause(failed);
    }
}
