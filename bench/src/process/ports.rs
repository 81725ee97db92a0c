//! Free ports, and room for many connections.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

/// Below Linux's default range for outgoing connections: a connection of a run cannot take a port that a
/// server of the run is about to listen on.
const PORTS: std::ops::Range<u16> = 10_240..32_768;

/// A port of 127.0.0.1 without a listener at this moment.
pub(crate) fn free_port() -> Result<u16> {
    Ok(listen_anywhere()?.local_addr()?.port())
}

/// A listener on a free port of 127.0.0.1, nonblocking, with room for 4,096 connections not yet accepted.
pub(crate) fn listen_anywhere() -> Result<TcpListener> {
    let clock = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |age| age.as_nanos() as u64);
    let mut random = SmallRng::seed_from_u64(clock ^ (u64::from(std::process::id()) << 32));
    let mut last = None;
    for _ in 0..1_000 {
        match listen(random.random_range(PORTS)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| anyhow::anyhow!("no port was tried"), Into::into)).context("no free port found")
}

fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(4_096)?;
    Ok(socket.into())
}

/// Raises the limit on open descriptors to what the system allows; children inherit it. Returns the limit.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let reached = if setrlimit(Resource::Nofile, raised).is_ok() {
        limit.maximum
    } else {
        limit.current
    };
    reached.unwrap_or(u64::MAX)
}
