//! Stand-in servers in a process of their own, which answer at once.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{
    lockstep::{Backends, STUCK},
    process::{listen_anywhere, raise_descriptor_limit},
    protocol::Protocol,
};

/// Stand in for servers: answer every read with the value of its key, and store nothing
///
/// The servers listen on free ports of 127.0.0.1, all in one process with one thread, until it is killed.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Servers
    #[arg(long, default_value_t = 4)]
    count: usize,
    /// Their protocol
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// Bytes of a value
    #[arg(long, short = 'd', default_value_t = 400)]
    value_size: usize,
    /// Write the ports to this file, a JSON list, when all servers listen
    #[arg(long, value_name = "FILE")]
    ports: PathBuf,
}

/// Runs `proxima-bench servers`.
pub(crate) fn run(options: &Options) -> Result<()> {
    raise_descriptor_limit();
    let listeners = (0..options.count)
        .map(|_| listen_anywhere())
        .collect::<Result<Vec<_>>>()?;
    let ports = listeners
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect::<Result<Vec<u16>>>()?;
    let mut backends = Backends::new(listeners, options.protocol, options.value_size)?;
    crate::output::write_json(&options.ports, &ports)?;
    loop {
        backends.answer_at_once(STUCK)?;
    }
}
