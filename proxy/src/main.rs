//! The `proxima` command.

use std::process::ExitCode;

use clap::Parser;
use proxima::control::{self, Embedded, Front, Options, Yaml};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
enum Cli {
    Run {
        #[arg(long)]
        config: Option<std::path::PathBuf>,
        #[arg(long, default_value = "auto")]
        io: proxima::reactor::Io,
        #[arg(long)]
        workers: Option<usize>,
        #[arg(long)]
        admin: Option<String>,
        #[arg(long, env = "HOST_IP")]
        node_address: Vec<std::net::IpAddr>,
        #[arg(long)]
        zone: Option<String>,
    },
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let Cli::Run { config, io, workers, admin, node_address, zone } = Cli::parse();
    let options = Options { io, workers, node_addresses: node_address, zone, admin };
    let front: Box<dyn Front> = match config {
        Some(path) => Box::new(Yaml(path)),
        None => Box::new(Embedded { listen: "127.0.0.1:11211".into(), admin: "127.0.0.1:9150".into() }),
    };
    match control::run(front, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proxima: {error}");
            ExitCode::from(2)
        }
    }
}
