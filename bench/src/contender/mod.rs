//! Contenders: proxies and servers by name, with their binaries, configurations and command lines.

mod accept_loop;
mod binary;
mod haproxy;
mod mariadb;
mod mcrouter;
mod memcached;
mod memcached_proxy;
mod mysqlrouter;
mod predixy;
mod proxima;
mod redis;
mod twemproxy;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{
    near::Near,
    process::{Launch, find_program},
    protocol::Protocol,
    tls::Pair,
};

/// A proxy, or a server that is measured like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    /// Proxima on io_uring, one worker
    #[value(name = "proxima-io_uring")]
    #[serde(rename = "proxima-io_uring")]
    ProximaIoUring,
    /// Proxima on epoll, one worker
    ProximaEpoll,
    /// Proxima with the file and the flags of twemproxy, on io_uring, one worker
    ProximaNutcracker,
    /// twemproxy (Debian: nutcracker)
    Twemproxy,
    /// HAProxy passing bytes in TCP mode, one thread
    Haproxy,
    /// MySQL Router, one I/O thread
    Mysqlrouter,
    /// mcrouter, one proxy thread; needs --binary
    Mcrouter,
    /// memcached's built-in proxy, one thread; needs --binary
    MemcachedProxy,
    /// predixy, one worker thread; needs --binary
    Predixy,
    /// memcached itself as a server, one thread
    Memcached,
    /// Redis itself as a server
    Redis,
    /// MariaDB itself as a server
    Mariadb,
    /// A loop that accepts, answers and sees the end of each connection, and does nothing else
    AcceptLoop,
    /// Proxima's embedded store as a server, on io_uring
    #[value(name = "embedded-io_uring")]
    #[serde(rename = "embedded-io_uring")]
    EmbeddedIoUring,
    /// Proxima's embedded store as a server, on epoll
    EmbeddedEpoll,
}

/// Connections of MySQL to a server, as many as there may be clients: none ever waits for one.
pub(crate) const MOST_DEDICATED: usize = 20_000;

/// How requests are spread over the servers behind a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Spread {
    /// Each key to one server, by consistent hashing where the proxy can
    Hash,
    /// Every request to all servers (Proxima: all_sync)
    All,
    /// The servers are copies of each other: sets only, each to all of them (Proxima: replicated)
    Copies,
}

/// twemproxy's `distribution`: how its file, which Proxima reads as well, spreads keys over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Distribution {
    /// Consistent hashing
    #[default]
    Ketama,
    /// The hash modulo the number of servers
    Modula,
    /// Any server, whatever the key is
    Random,
}

impl Distribution {
    /// Its name in the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ketama => "ketama",
            Self::Modula => "modula",
            Self::Random => "random",
        }
    }
}

/// The place in which a contender runs.
pub(crate) struct Site<'a> {
    /// The directory for its configuration and output.
    pub(crate) directory: &'a Path,
    /// The port on 127.0.0.1 where it listens.
    pub(crate) port: u16,
    /// The ports of the servers behind it, on 127.0.0.1.
    pub(crate) servers: &'a [u16],
    /// How requests are spread over the servers.
    pub(crate) spread: Spread,
    /// The distribution in twemproxy's file.
    pub(crate) distribution: Distribution,
    /// The protocol of clients and servers.
    pub(crate) protocol: Protocol,
    /// Bytes of a value.
    pub(crate) value_size: usize,
    /// The near cache before the servers.
    pub(crate) near: Near,
    /// Whether the servers of MySQL are a Galera cluster to the proxy.
    pub(crate) galera: bool,
    /// The most connections of MySQL to a server, all of which may be idle. `None`: the proxy's defaults.
    pub(crate) dedicated: Option<usize>,
    /// Clients that HAProxy has room for. Each needs two descriptors.
    pub(crate) most_clients: usize,
    /// The certificate for TLS with clients; none: they speak plainly.
    pub(crate) tls: Option<&'a Pair>,
}

impl Contender {
    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ProximaIoUring => "proxima-io_uring",
            Self::ProximaEpoll => "proxima-epoll",
            Self::ProximaNutcracker => "proxima-nutcracker",
            Self::Twemproxy => "twemproxy",
            Self::Haproxy => "haproxy",
            Self::Mysqlrouter => "mysqlrouter",
            Self::Mcrouter => "mcrouter",
            Self::MemcachedProxy => "memcached-proxy",
            Self::Predixy => "predixy",
            Self::Memcached => "memcached",
            Self::Redis => "redis",
            Self::Mariadb => "mariadb",
            Self::AcceptLoop => "accept-loop",
            Self::EmbeddedIoUring => "embedded-io_uring",
            Self::EmbeddedEpoll => "embedded-epoll",
        }
    }

    /// Whether it answers by itself, without servers.
    pub(crate) fn is_server(self) -> bool {
        matches!(
            self,
            Self::Memcached
                | Self::Redis
                | Self::Mariadb
                | Self::AcceptLoop
                | Self::EmbeddedIoUring
                | Self::EmbeddedEpoll
        )
    }

    /// Whether it is Proxima before a pool of servers.
    pub(crate) fn is_proxima(self) -> bool {
        matches!(self, Self::ProximaIoUring | Self::ProximaEpoll)
    }

    /// Whether it serves clients of this protocol.
    pub(crate) fn speaks(self, protocol: Protocol) -> bool {
        match self {
            Self::Mcrouter | Self::MemcachedProxy | Self::Memcached => protocol == Protocol::Memcached,
            Self::Predixy | Self::Redis => protocol == Protocol::Redis,
            Self::Mysqlrouter | Self::Mariadb => protocol.is_mysql(),
            Self::ProximaIoUring | Self::ProximaEpoll | Self::Haproxy | Self::AcceptLoop => true,
            _ => !protocol.is_mysql(),
        }
    }

    /// Clients that it takes at a time, as it is configured here.
    pub(crate) const fn most_clients(self) -> usize {
        match self {
            Self::Haproxy => haproxy::MOST_CLIENTS,
            _ => usize::MAX,
        }
    }

    /// Its binary: the one that `named` names, or else the one that is found.
    pub(crate) fn program(self, named: &[Binary]) -> Result<PathBuf> {
        let named = named
            .iter()
            .find(|binary| binary.contender == self)
            .map(|binary| binary.path.clone());
        let program = named.or_else(|| self.find());
        program.with_context(|| format!("no {0} found; name it with --binary {0}=PATH", self.name()))
    }

    fn find(self) -> Option<PathBuf> {
        match self {
            Self::ProximaIoUring
            | Self::ProximaEpoll
            | Self::ProximaNutcracker
            | Self::EmbeddedIoUring
            | Self::EmbeddedEpoll => proxima::find(),
            Self::Twemproxy => find_program("nutcracker"),
            Self::Haproxy => find_program("haproxy"),
            Self::Mysqlrouter => find_program("mysqlrouter"),
            Self::Mcrouter => find_program("mcrouter"),
            Self::Predixy => find_program("predixy"),
            Self::Memcached => find_program("memcached"),
            Self::Redis => find_program("redis-server"),
            Self::Mariadb => find_program("mariadbd"),
            Self::AcceptLoop => std::env::current_exe().ok(),
            // The memcached that distributions build has no proxy inside.
            Self::MemcachedProxy => None,
        }
    }

    /// The first line of what it says about its version.
    pub(crate) fn version(self, program: &Path) -> String {
        let flag = match self {
            Self::Twemproxy | Self::Memcached | Self::MemcachedProxy => "-V",
            Self::Haproxy => "-v",
            _ => "--version",
        };
        let output = Command::new(program).arg(flag).output();
        let output = output
            .map(|output| [output.stdout, output.stderr].concat())
            .unwrap_or_default();
        String::from_utf8_lossy(&output)
            .lines()
            .next()
            .unwrap_or("unknown version")
            .trim()
            .to_owned()
    }

    /// Writes its configuration and says how to start it.
    pub(crate) fn launch(self, program: &Path, site: &Site<'_>) -> Result<Launch> {
        let proxima = self.is_proxima();
        if site.spread != Spread::Hash && !proxima {
            bail!("only Proxima is measured with requests to all servers");
        }
        if site.near != Near::None && !proxima {
            bail!("only Proxima is measured with a near cache");
        }
        if !self.speaks(site.protocol) {
            bail!("it does not speak {}", site.protocol.name());
        }
        if site.tls.is_some() && !proxima && self != Self::Haproxy {
            bail!("only Proxima and HAProxy are measured with TLS");
        }
        if site.protocol.is_mysql() && site.tls.is_some() && !proxima {
            bail!("TLS begins behind MySQL's greeting, which only Proxima speaks");
        }
        match self {
            Self::ProximaIoUring => proxima::launch(program, site, "io_uring", proxima::Leaf::Pool),
            Self::ProximaEpoll => proxima::launch(program, site, "epoll", proxima::Leaf::Pool),
            Self::EmbeddedIoUring => proxima::launch(program, site, "io_uring", proxima::Leaf::Embedded),
            Self::EmbeddedEpoll => proxima::launch(program, site, "epoll", proxima::Leaf::Embedded),
            Self::ProximaNutcracker => proxima::launch_as_nutcracker(program, site),
            Self::Twemproxy => twemproxy::launch(program, site),
            Self::Haproxy => haproxy::launch(program, site),
            Self::Mysqlrouter => mysqlrouter::launch(program, site),
            Self::Mcrouter => mcrouter::launch(program, site),
            Self::MemcachedProxy => memcached_proxy::launch(program, site),
            Self::Predixy => predixy::launch(program, site),
            Self::Memcached => Ok(memcached::launch(program, site.port)),
            Self::Redis => Ok(redis::launch(program, site.port)),
            Self::Mariadb => mariadb::launch(program, site.port, site.directory),
            Self::AcceptLoop => Ok(accept_loop::launch(program, site)),
        }
    }
}

pub(crate) use binary::Binary;
pub(crate) use mariadb::launch as mariadb;
pub(crate) use memcached::launch as memcached;
pub(crate) use redis::launch as redis;

/// Writes a configuration file into the site's directory.
fn write(site: &Site<'_>, name: &str, text: &str) -> Result<PathBuf> {
    let file = site.directory.join(name);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}
