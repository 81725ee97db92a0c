//! The table of a run: it is made and filled once, before anything is measured.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    client::log_in,
    packet,
    request::{CREATE, append_pair, append_query},
};
use crate::{
    net::{connect, wait_for_words},
    tls::Stream,
    workload::{Keys, value},
};

/// Bytes of a statement that stores values; above that it has one alone.
const BATCH: usize = 64 * 1024;

/// Makes the table at `address`, and stores the values of all `keys`.
pub(crate) fn fill(address: SocketAddr, keys: &Keys, value_size: usize) -> Result<()> {
    let socket = connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut stream = Stream::new(socket, None)?;
    log_in(vec![&mut stream], false, None, &mut wait_for_words)?;
    run(&mut stream, CREATE.as_bytes()).with_context(|| format!("{address} has no table"))?;
    let (mut next, mut text, mut value) = (0, Vec::new(), Vec::new());
    while next < keys.count() {
        text.clear();
        text.extend_from_slice(b"REPLACE INTO bench VALUES");
        let mut separator: &[u8] = b"";
        while next < keys.count() && (separator.is_empty() || text.len() < BATCH) {
            text.extend_from_slice(separator);
            text.extend_from_slice(b"('");
            value.clear();
            value::append(keys.get(next), value_size, &mut value);
            append_pair(keys.get(next), &value, &mut text);
            text.push(b')');
            separator = b",";
            next += 1;
        }
        run(&mut stream, &text).with_context(|| format!("{address} stores no values"))?;
    }
    Ok(())
}

/// Runs a statement, the reply to which is one packet.
fn run(stream: &mut Stream, text: &[u8]) -> Result<()> {
    let (mut command, mut reply) = (Vec::new(), Vec::new());
    append_query(text, &mut command);
    stream.write_all(&command)?;
    let packet = loop {
        let mut part = [0; 4_096];
        let length = stream.read(&mut part)?;
        ensure!(length > 0, "the connection was closed");
        reply.extend_from_slice(&part[..length]);
        if let Some(packet) = packet::first(&reply) {
            break packet;
        }
    };
    ensure!(
        packet.payload.first() == Some(&0),
        "it says {}",
        packet.payload.escape_ascii()
    );
    Ok(())
}
