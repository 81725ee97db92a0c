//! Reading versions, and having each judged.

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{Run, answer::Failure, ledger::Verdict, link::Link, shown::Shown, tally::StaleRead, value};

/// Reads until the run is over: the key that was acknowledged last and any key, in turn.
pub(super) fn run(run: &Run<'_>, number: u32) {
    let options = run.options;
    let addresses = options.read_addresses();
    let mut links: Vec<(Link, Shown)> = addresses
        .iter()
        .map(|address| (Link::new(*address, options), Shown::new(options.keys)))
        .collect();
    let mut random = SmallRng::seed_from_u64(u64::from(number));
    for turn in number as usize.. {
        if run.is_over() {
            break;
        }
        // Each address gets both kinds: the kind changes with every round over the addresses.
        let key = if (turn / links.len()).is_multiple_of(2) {
            run.ledger.latest()
        } else {
            random.random_range(0..options.keys)
        };
        let place = turn % links.len();
        let failed = read(run, &mut links[place], key);
        run.pause(failed);
    }
}

/// One read; whether it failed.
fn read(run: &Run<'_>, (link, shown): &mut (Link, Shown), key: u32) -> bool {
    let name = &run.keys[key as usize];
    let read = run.ledger.begin_read(key);
    let answer = link.get(name);
    let mut tally = run.tally.lock();
    let bytes = match answer {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            tally.counts.misses += 1;
            return false;
        }
        Err(failure) => {
            tally.read_failed(link.address, failure);
            return true;
        }
    };
    tally.counts.hits += 1;
    let Some(version) = value::version(name, run.options.value_size as usize, &bytes) else {
        let start = bytes[..bytes.len().min(200)].escape_ascii();
        let words = format!("{name} is not as it was written: {start}");
        tally.read_failed(link.address, Failure::Wrong(words));
        return false;
    };
    if shown.note(link.connection(), key, version) {
        tally.counts.backward_reads += 1;
    }
    match run.ledger.judge(key, &read, version) {
        Verdict::Fresh => {}
        Verdict::Stale { age, acknowledged } => tally.stale(StaleRead {
            key: name.clone(),
            address: link.address,
            version,
            acknowledged_version: acknowledged,
            age,
        }),
        Verdict::NeverWritten => {
            let words = format!("{name} has version {version}, which was never written");
            tally.read_failed(link.address, Failure::Wrong(words));
        }
    }
    false
}
