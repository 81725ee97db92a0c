//! A visit at a server whose copy is to be read again: who is it, are our old connections gone, and what it owes.
//!
//! The order matters, and was measured: a frozen memcached executes what its sockets hold when it goes on, after a flush that
//! came by another connection too. So first the old connections must be gone from `stats conns` (which must list the
//! connection that asks, or addresses are translated in between and prove nothing), and only then is the debt paid.

#![allow(
    clippy::disallowed_methods,
    reason = "runs on the control thread, which owns the clock"
)]

use std::{collections::HashSet, io, net::SocketAddr, time::Duration};

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
const UNPROVEN: Duration = Duration::from_secs(10);
/// Old connections are given so long to go away.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the list of connections.
const LOOK: Duration = Duration::from_millis(20);
/// No line of an answer is longer.
const LINE: u64 = 64 * 1024;
/// Deletes under way at a time.
const BATCH: usize = 100;

/// Who is it?
///
/// # Errors
/// In words: it does not answer, or not as memcached does.
pub async fn meet(member: &Member) -> Result<Incarnation, String> {
    let (who, _) = Visit::begin(member).await?.life().await?;
    Ok(who)
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
                let own = stream.local_addr().ok();
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

    async fn wait_for_old_connections(&mut self, debt: &Debt) -> Result<(), String> {
        if debt.connections.is_empty() && !debt.unknown_connection {
            return Ok(());
        }
        let old: HashSet<SocketAddr> = debt.connections.iter().copied().collect();
        let end = Instant::now() + PATIENCE;
        loop {
            let listed: HashSet<SocketAddr> = match self.stats("stats conns\r\n").await {
                Ok(rows) => rows.iter().filter_map(|(_, value)| address(value)).collect(),
                Err(_) => HashSet::new(),
            };
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
                words.extend_from_slice(b"delete ");
                words.extend_from_slice(key);
                words.extend_from_slice(b"\r\n");
            }
            self.say(&words).await?;
            for _ in batch {
                match self.line().await?.as_str() {
                    "DELETED" | "NOT_FOUND" => {}
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

/// `tcp:127.0.0.1:4711`, `tcp6:[::1]:4711`.
fn address(value: &str) -> Option<SocketAddr> {
    value
        .strip_prefix("tcp:")
        .or_else(|| value.strip_prefix("tcp6:"))?
        .parse()
        .ok()
}
