//! `proxima-bench`: load, and measure what it costs the proxy that carries it.
//!
//! * [`load`] drives a server or proxy from many connections and measures latencies;
//! * [`lockstep`] measures a proxy's processor time per request, repeatably;
//! * [`stale`] looks for reads that bring what was replaced before;
//! * [`hostile`] attacks a server or proxy, and sees what its other clients notice;
//! * [`multiplex`] measures what many clients of MySQL cost a server, directly and behind a proxy;
//! * [`compare`] runs both over every proxy that is found, and writes dated results.
#![forbid(unsafe_code)]

mod accept_loop;
mod compare;
mod contender;
mod figures;
mod fill;
mod form;
mod hostile;
mod load;
mod lockstep;
mod memcache;
mod multiplex;
mod mysql;
mod near;
mod net;
mod output;
mod process;
mod protocol;
mod redis;
mod servers;
mod session;
mod stale;
mod timer;
mod tls;
mod verdict;
mod workload;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measure proxies of memcached, Redis and MySQL: latency under load, processor time per request, stale
/// reads, hostile clients, side by side
#[derive(Parser)]
#[command(version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(Box<load::Options>),
    Lockstep(Box<lockstep::Options>),
    Stale(Box<stale::Options>),
    Hostile(Box<hostile::Options>),
    Compare(Box<compare::Options>),
    Multiplex(Box<multiplex::Options>),
    Servers(servers::Options),
    #[command(hide = true)]
    AcceptLoop(accept_loop::Options),
}

fn main() -> ExitCode {
    match run(&CommandLine::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("proxima-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Load(options) => load::run(options),
        Command::Lockstep(options) => lockstep::run(options).map(|()| ExitCode::SUCCESS),
        Command::Stale(options) => stale::run(options),
        Command::Hostile(options) => hostile::run(options),
        Command::Compare(options) => compare::run(options).map(|()| ExitCode::SUCCESS),
        Command::Multiplex(options) => multiplex::run(options).map(|()| ExitCode::SUCCESS),
        Command::Servers(options) => servers::run(options).map(|()| ExitCode::SUCCESS),
        Command::AcceptLoop(options) => accept_loop::run(options).map(|()| ExitCode::SUCCESS),
    }
}
