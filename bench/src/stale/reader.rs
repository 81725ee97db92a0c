//! Reading versions, and having each judged.

use std::net::SocketAddr;

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{
    Run,
    answer::{Failure, excerpt},
    ledger::Verdict,
    link::Link,
    pools::Pools,
    tally::StaleRead,
    value,
};

/// Reads until the run is over: the key that was acknowledged last and any key, in turn.
pub(super) fn run(run: &Run<'_>, number: u32) {
    let addresses = run.options.read_addresses();
    let pools = run.pools();
    let mut random = SmallRng::seed_from_u64(u64::from(number));
    for turn in number as usize.. {
        if run.is_over() {
            break;
        }
        // Each address gets both kinds: the kind changes with every round over the addresses.
        let key = if (turn / addresses.len()).is_multiple_of(2) {
            run.ledger.latest()
        } else {
            random.random_range(0..run.options.keys)
        };
        let failed = read(run, &pools, addresses[turn % addresses.len()], key);
        run.pause(failed);
    }
}

/// One read; whether it failed.
pub(super) fn read(run: &Run<'_>, pools: &Pools<'_>, address: SocketAddr, key: u32) -> bool {
    pools.with(address, |link| read_over(link, run, address, key))
}

fn read_over(link: &mut Link<'_>, run: &Run<'_>, address: SocketAddr, key: u32) -> bool {
    let name = &run.keys[key as usize];
    let read = run.ledger.begin_read(key);
    let answer = link.get(name);
    let mut tally = run.tally.lock();
    let bytes = match answer {
        Ok(Some(found)) => found.value,
        Ok(None) => {
            tally.counts.misses += 1;
            return false;
        }
        Err(failure) => {
            tally.read_failed(address, failure);
            return true;
        }
    };
    tally.counts.hits += 1;
    let Some(version) = value::version(name, run.options.value_size as usize, &bytes) else {
        let words = format!("{name} is not as it was written: {}", excerpt(&bytes));
        tally.read_failed(address, Failure::Wrong(words));
        return false;
    };
    if link.note(key, version) {
        tally.counts.backward_reads += 1;
    }
    match run.ledger.judge(key, &read, version) {
        Verdict::Fresh => {}
        Verdict::Stale { age, acknowledged } => tally.stale(StaleRead {
            key: name.clone(),
            address,
            version,
            acknowledged_version: acknowledged,
            age,
        }),
        Verdict::NeverWritten => {
            let words = format!("{name} has version {version}, which was never written");
            tally.read_failed(address, Failure::Wrong(words));
        }
    }
    false
}
