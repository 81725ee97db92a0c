//! Setting every key of a server once, before anything is measured.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{
    mysql,
    net::connect,
    protocol::{Protocol, Statements},
    workload::Keys,
};

/// Requests of one write, bytes; small enough that a server which answers before it reads on cannot block
/// both sides.
const BATCH: usize = 64 * 1024;

/// Sets all `keys` at `address`.
pub(crate) fn fill(protocol: Protocol, address: SocketAddr, keys: &Keys, value_size: usize) -> Result<()> {
    if protocol.is_mysql() {
        return mysql::fill(address, keys, value_size);
    }
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut requests = Vec::new();
    let mut next = 0;
    while next < keys.count() {
        let first = next;
        requests.clear();
        while next < keys.count() && (requests.is_empty() || requests.len() < BATCH) {
            protocol.append_set(keys.get(next), value_size, Statements::default(), &mut requests);
            next += 1;
        }
        stream.write_all(&requests)?;
        let expected = protocol.stored().repeat((next - first) as usize);
        let mut replies = vec![0; expected.len()];
        stream
            .read_exact(&mut replies)
            .with_context(|| format!("{address} does not answer sets"))?;
        ensure!(
            replies == expected,
            "{address} refuses sets: {}",
            replies[..replies.len().min(200)].escape_ascii()
        );
    }
    Ok(())
}
