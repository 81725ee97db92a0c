//! The values that attacks ask for.
//!
//! Their keys are short, so that many of them fit in one line.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{net::connect, protocol::Protocol, redis::request};

/// A value that no proxy passes on at once.
pub(super) const LARGE: &str = "~b";
/// The size that every memcached takes, key and overhead included.
const LARGE_SIZE: usize = 1_000_000;
/// A value that is just not large: proxies hold it whole.
pub(super) const MIDDLE: &str = "~m";
const MIDDLE_SIZE: usize = 60_000;
/// The key that smuggled requests ask for. A well-behaved client that gets its value got another client's
/// reply.
pub(super) const CANARY: &str = "~canary";

/// Sets all baits.
pub(super) fn lay(address: SocketAddr, protocol: Protocol) -> Result<()> {
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    for (key, value) in [
        (LARGE, vec![b'b'; LARGE_SIZE]),
        (MIDDLE, vec![b'm'; MIDDLE_SIZE]),
        (CANARY, b"smuggled".to_vec()),
    ] {
        let bytes = match protocol {
            Protocol::Redis => request::command(&[b"SET", key.as_bytes(), value.as_slice()]),
            _ => {
                let head = format!("set {key} 0 0 {}\r\n", value.len());
                [head.as_bytes(), &value, b"\r\n"].concat()
            }
        };
        let refused = || format!("{address} does not take a value of {} bytes", value.len());
        stream.write_all(&bytes).with_context(refused)?;
        let mut reply = [0; 256];
        let length = stream.read(&mut reply).with_context(refused)?;
        ensure!(
            reply[..length] == *protocol.stored(),
            "{}: {}",
            refused(),
            reply[..length].escape_ascii()
        );
    }
    Ok(())
}
