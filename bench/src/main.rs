//! proxima-bench
#![forbid(unsafe_code)]

mod contender;
mod figures;
mod lockstep;
mod memcache;
mod output;
mod process;
mod workload;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Cli { #[command(subcommand)] command: Sub }
#[derive(Subcommand)]
enum Sub { Lockstep(Box<lockstep::Options>) }

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Sub::Lockstep(options) => lockstep::run(&options),
    }
}
