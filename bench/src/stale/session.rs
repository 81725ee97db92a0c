//! A session: one client that writes keys of its own and reads them, on one connection.

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{Run, reader, writer};

/// Writes a key and reads one, in turn, until the run is over: the key that it has just written, or any of
/// its own.
pub(super) fn run(run: &Run<'_>, number: u32) {
    let options = run.options;
    let pools = run.pools();
    let mut addresses = options.write.clone();
    if !options.write_all {
        // What is promised to a session holds on its connection, and not at another address.
        addresses = vec![addresses[number as usize % addresses.len()]];
    }
    let own: Vec<u32> = options.keys_of(number).collect();
    let mut random = SmallRng::seed_from_u64(u64::from(number));
    for (turn, &written) in own.iter().cycle().enumerate() {
        if run.is_over() {
            break;
        }
        run.pause(writer::write(run, &pools, &addresses, written));
        // Each address gets both kinds of reads.
        let key = if (turn / addresses.len()).is_multiple_of(2) {
            written
        } else {
            own[random.random_range(0..own.len())]
        };
        run.pause(reader::read(run, &pools, addresses[turn % addresses.len()], key));
    }
}
