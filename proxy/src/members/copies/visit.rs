//! A visit at a server whose copy is to be read again: who is it, are our old connections gone, and what it owes.
//!
//! The order matters, and was measured: a frozen memcached executes what its sockets hold when it goes on, after a flush that
//! came by another connection too. So first the old connections must be gone from `stats conns` (which must list the
//! connection that asks, or addresses are translated in between and prove nothing), and only then is the debt paid.

#![allow(
    clippy::disallowed_methods,
    reason = "runs on the control thread, which owns the clock"
)]

use std::{
    collections::HashSet,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use proxima_wire::memcache;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream},
    net::{TcpStream, UnixStream},
    time::{Instant, sleep, timeout},
};

use super::{Debt, Incarnation, Payment};
use crate::{
    config::schema::Rejoin,
    members::{Member, probe::connect},
};

/// Where addresses prove nothing: so long after a server answers again, what its other connections held is executed, or
/// never will be.
pub const UNPROVEN: Duration = Duration::from_secs(10);
/// Old connections are given so long to go away.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the list of connections.
const LOOK: Duration = Duration::from_millis(20);
/// No line of an answer is longer.
const LINE: u64 = 64 * 1024;
/// Deletes under way at a time.
const BATCH: usize = 100;

/// With more connections nobody compares lists.
const MOST: usize = 10_000;

/// Who is it, and which address of ours does it see?
///
/// # Errors
/// In words: it does not answer, or not as memcached does.
pub async fn meet(member: &Member) -> Result<(Incarnation, Option<IpAddr>), String> {
    let mut visit = Visit::begin(member).await?;
    let (who, _) = visit.life().await?;
    Ok((who, visit.own.map(|own| own.ip())))
}

/// The connections that a server has.
#[derive(Debug)]
pub struct Listing {
    /// Those from our address, and from the one that we had; `None`: it cannot list them.
    pub ends: Option<HashSet<SocketAddr>>,
    /// Our address; none on a Unix socket.
    pub from: Option<IpAddr>,
}

/// Which connections has it from us? `before` is our address of another time.
///
/// # Errors
/// In words: it does not answer.
pub async fn list(member: &Member, before: Option<IpAddr>) -> Result<Listing, String> {
    let mut visit = Visit::begin(member).await?;
    // One that answers, though not to what comes next, cannot list them.
    visit.life().await?;
    let from = visit.own.map(|own| own.ip());
    let ours = [from, before.map(|ip| ip.to_canonical())];
    let ends = match (visit.own, visit.listed().await) {
        (Some(own), Ok(listed)) if listed.contains(&own) => {
            let others = listed.into_iter().filter(|end| *end != own);
            Some(others.filter(|end| ours.contains(&Some(end.ip()))).collect())
        }
        _ => None,
    };
    let ends = ends.filter(|ends: &HashSet<_>| ends.len() <= MOST);
    Ok(Listing { ends, from })
}

/// The same, again and again until there are none, or until `end`: then those of the first time that are left.
///
/// # Errors
/// In words: it does not answer.
pub async fn list_until(
    member: &Member,
    before: Option<IpAddr>,
    end: std::time::Instant,
) -> Result<Listing, String> {
    let mut listing = list(member, before).await?;
    while let Some(first) = listing.ends.as_ref().filter(|ends| !ends.is_empty())
        && Instant::now().into_std() < end
    {
        sleep(LOOK).await;
        let Listing { ends: Some(now), .. } = list(member, before).await? else {
            break;
        };
        listing.ends = Some(first & &now);
    }
    Ok(listing)
}

/// Pays what a copy owes, if our old connections to it are gone. `known` is the life in which it was last met.
///
/// # Errors
/// In words: it does not answer, its old connections stay, it refuses the flush, or it is to wait for a restart.
pub async fn pay<'a>(
    member: &Member,
    debt: &'a Debt,
    rejoin: Rejoin,
    known: Incarnation,
) -> Result<(Incarnation, Payment<'a>), String> {
    let mut visit = Visit::begin(member).await?;
    let (who, stored) = visit.life().await?;
    let due = Payment::due(debt, rejoin, known, who, stored, Instant::now().into_std())?;
    if due != Payment::None {
        visit.wait_for_old_connections(debt).await?;
    }
    match &due {
        Payment::None => {}
        Payment::Keys(keys) => visit.delete(keys).await?,
        // By the connection on which it said who it is: another life is not reached by it.
        Payment::Flush => visit.flush().await?,
    }
    Ok((who, due))
}

trait Wire: AsyncBufRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncBufRead + AsyncWrite + Unpin + Send> Wire for T {}

struct Visit {
    wire: Box<dyn Wire>,
    /// Our end of it; none on a Unix socket.
    own: Option<SocketAddr>,
    patience: Duration,
}

impl Visit {
    async fn begin(member: &Member) -> Result<Self, String> {
        let words = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut => "it does not accept connections".to_owned(),
            _ => error.to_string(),
        };
        let socket = member.socket.as_ref().ok_or("its name does not resolve")?;
        let (wire, own): (Box<dyn Wire>, _) = match (socket.as_socket(), socket.as_pathname()) {
            (Some(address), _) => {
                let open = || TcpStream::connect(address);
                let stream = connect(member, open).await.map_err(words)?;
                let own = stream.local_addr().ok().map(canonical);
                (Box::new(BufStream::new(stream)), own)
            }
            (None, Some(path)) => {
                let open = || UnixStream::connect(path);
                let stream = connect(member, open).await.map_err(words)?;
                (Box::new(BufStream::new(stream)), None)
            }
            _ => return Err("it has no address".into()),
        };
        Ok(Self {
            wire,
            own,
            patience: member.timeout,
        })
    }

    async fn say(&mut self, words: &[u8]) -> Result<(), String> {
        let said = async {
            self.wire.write_all(words).await?;
            self.wire.flush().await
        };
        timeout(self.patience, said)
            .await
            .map_err(|_| "it takes no requests".to_owned())?
            .map_err(|error| error.to_string())
    }

    async fn line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        let mut wire = (&mut self.wire).take(LINE);
        let heard = wire.read_until(b'\n', &mut line);
        timeout(self.patience, heard)
            .await
            .map_err(|_| "it does not answer in time".to_owned())?
            .map_err(|error| error.to_string())?;
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            None => Err("it ends the conversation, or a line never".into()),
        }
    }

    /// Rows of `stats` and their values, until its END.
    async fn stats(&mut self, what: &str) -> Result<Vec<(String, String)>, String> {
        /// No server has more connections than this.
        const ROWS: usize = 4_000_000;
        self.say(what.as_bytes()).await?;
        let mut rows = Vec::new();
        loop {
            let line = self.line().await?;
            match line.strip_prefix("STAT ").and_then(|row| row.split_once(' ')) {
                Some((name, value)) if rows.len() < ROWS => rows.push((name.into(), value.into())),
                _ if line == "END" => return Ok(rows),
                _ => return Err(format!("it answers `{}` to `stats`", line.escape_debug())),
            }
        }
    }

    /// Which life this is, and how many values have been stored in it.
    async fn life(&mut self) -> Result<(Incarnation, u64), String> {
        let rows = self.stats("stats\r\n").await?;
        let version = rows.iter().find(|(name, _)| name == "version");
        let version = version.map_or("", |(_, version)| version.as_str());
        if memcache::meta_commands(format!("VERSION {version}").as_bytes()) != Some(true) {
            return Err(format!(
                "it is memcached `{}`: a copy needs the meta commands of 1.6.10 or later",
                version.escape_debug()
            ));
        }
        let number = |wanted: &str| {
            rows.iter()
                .find(|(name, _)| name == wanted)
                .and_then(|(_, value)| value.parse().ok())
                .ok_or_else(|| format!("its `stats` have no {wanted}"))
        };
        let who = Incarnation {
            pid: number("pid")?,
            uptime: Duration::from_secs(number("uptime")?),
        };
        Ok((who, number("total_items")?))
    }

    /// The other ends of its connections.
    async fn listed(&mut self) -> Result<HashSet<SocketAddr>, String> {
        Ok(connections(&self.stats("stats conns\r\n").await?))
    }

    async fn wait_for_old_connections(&mut self, debt: &Debt) -> Result<(), String> {
        if debt.connections.is_empty() && !debt.unknown_connection {
            return Ok(());
        }
        let old: HashSet<SocketAddr> = debt.connections.iter().copied().collect();
        let end = Instant::now() + PATIENCE;
        loop {
            let listed = self.listed().await.unwrap_or_default();
            if debt.unknown_connection || self.own.is_none_or(|own| !listed.contains(&own)) {
                // From this answer on: a frozen server has executed nothing until it gave it.
                sleep(UNPROVEN).await;
                return Ok(());
            }
            let left = old.intersection(&listed).count();
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("{left} old connections of ours are still open there"));
            }
            sleep(LOOK).await;
        }
    }

    async fn delete(&mut self, keys: &[&[u8]]) -> Result<(), String> {
        for batch in keys.chunks(BATCH) {
            let mut words = Vec::new();
            for key in batch {
                memcache::removal(key, &mut words);
            }
            self.say(&words).await?;
            for _ in batch {
                match self.line().await?.as_str() {
                    "HD" | "NF" => {}
                    other => return Err(format!("it answers `{}` to a delete", other.escape_debug())),
                }
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), String> {
        self.say(b"flush_all\r\n").await?;
        match self.line().await?.as_str() {
            "OK" => Ok(()),
            other => Err(format!("it refuses to be flushed: `{}`", other.escape_debug())),
        }
    }
}

/// The rows `FD:addr ADDRESS` of `stats conns`, but for those of sockets that listen.
fn connections(rows: &[(String, String)]) -> HashSet<SocketAddr> {
    let of = |what| {
        rows.iter()
            .filter_map(move |(name, value)| Some((name.strip_suffix(what)?, value)))
    };
    let listening: HashSet<&str> = of(":state")
        .filter(|(_, state)| *state == "conn_listening")
        .map(|(fd, _)| fd)
        .collect();
    of(":addr")
        .filter(|(fd, _)| !listening.contains(fd))
        .filter_map(|(_, value)| address(value))
        .collect()
}

/// `tcp:127.0.0.1:4711`, `tcp6:[::1]:4711`.
fn address(value: &str) -> Option<SocketAddr> {
    value
        .strip_prefix("tcp:")
        .or_else(|| value.strip_prefix("tcp6:"))?
        .parse()
        .ok()
        .map(canonical)
}

/// One that listens to both kinds of addresses lists `::ffff:127.0.0.1` for 127.0.0.1.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_listed_and_listening_sockets_are_not() {
        let rows = [
            ("26:addr", "tcp:127.0.0.1:11211"),
            ("26:state", "conn_listening"),
            ("26:secs_since_last_cmd", "9"),
            ("28:addr", "tcp:127.0.0.1:45030"),
            ("28:listen_addr", "tcp:127.0.0.1:11211"),
            ("28:state", "conn_parse_cmd"),
            ("29:addr", "tcp6:[::ffff:10.0.0.1]:45031"),
            ("29:state", "conn_read"),
            ("30:addr", "tcp6:[::1]:45032"),
            ("30:state", "conn_read"),
            ("31:addr", "unix:/run/memcached.sock"),
            ("31:state", "conn_read"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = ["127.0.0.1:45030", "10.0.0.1:45031", "[::1]:45032"];
        let expected = expected.map(|address| address.parse::<SocketAddr>().unwrap());
        assert_eq!(connections(&rows), expected.into());
    }
}
