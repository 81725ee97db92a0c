//! Ways to the server: directly, or through a proxy.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use rand::{SeedableRng, rngs::SmallRng};
use tempfile::TempDir;

use super::{
    closed::{self, Request},
    crowd::Crowd,
    driver::GO,
};
use crate::{
    contender::{Contender, Distribution, Site, Spread},
    near::Near,
    process::{Child, Placement, free_port},
    protocol::Protocol,
};

/// The name of the way without a proxy.
pub(super) const DIRECT: &str = "direct";

/// A proxy has to serve within this time after its start.
const START: Duration = Duration::from_secs(10);

/// Clients that HAProxy has room for beside those that are asked for.
const ROOM: usize = 20;

/// A way.
pub(super) enum Way {
    Direct,
    Through(Contender, PathBuf),
}

/// A way that is open. Its proxy ends with it.
pub(super) struct OpenWay {
    pub(super) address: SocketAddr,
    proxy: Option<Child>,
    /// The files of the proxy.
    _directory: TempDir,
}

impl Way {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Direct => DIRECT,
            Self::Through(contender, _) => contender.name(),
        }
    }

    pub(super) fn is_proxima(&self) -> bool {
        matches!(self, Self::Through(contender, _) if contender.is_proxima())
    }

    /// Opens the way to the server on this port, with a proxy that takes this number of clients, and waits
    /// until it serves.
    pub(super) fn open(&self, server: u16, clients: usize, directory: &Path) -> Result<OpenWay> {
        let place = tempfile::tempdir_in(directory)?;
        let (port, proxy) = match self {
            Self::Direct => (server, None),
            Self::Through(contender, program) => {
                let port = free_port()?;
                let site = Site {
                    directory: place.path(),
                    port,
                    servers: &[server],
                    spread: Spread::Hash,
                    distribution: Distribution::default(),
                    protocol: Protocol::Mysql,
                    // No stand-in answers here: the server has its own values.
                    value_size: 0,
                    near: Near::None,
                    galera: false,
                    dedicated: None,
                    most_clients: clients + ROOM,
                    tls: None,
                };
                let launch = contender.launch(program, &site)?;
                (
                    port,
                    Some(Child::start(&launch, &Placement::Inherited, place.path())?),
                )
            }
        };
        let mut way = OpenWay {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            proxy,
            _directory: place,
        };
        way.wait_until_it_serves()?;
        Ok(way)
    }
}

impl OpenWay {
    /// The process of the proxy.
    pub(super) fn pid(&self) -> Option<u32> {
        self.proxy.as_ref().map(Child::pid)
    }

    /// Fails if the proxy has ended.
    pub(super) fn check_running(&mut self) -> Result<()> {
        self.proxy.as_mut().map_or(Ok(()), Child::check_running)
    }

    fn wait_until_it_serves(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            self.check_running()?;
            let mut crowd = Crowd::new(self.address, 1, std::slice::from_ref(&GO))?;
            let mut random = SmallRng::seed_from_u64(0);
            match closed::run(&mut crowd, Request::Login, Duration::ZERO, &mut random) {
                Ok(_) => return Ok(()),
                Err(error) => ensure!(Instant::now() < deadline, "it does not serve: {error:#}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
