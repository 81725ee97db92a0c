//! The conversation with a server whose copy is to be read again: its identity, the end of our old
//! connections, and then the repair.
//!
//! The order matters, and was measured: a frozen memcached executes what its sockets hold when it goes on,
//! even after a flush that came by another connection. Therefore the old connections must first be gone from
//! the server's list (which must name the connection that asks, or addresses are translated in between and
//! prove nothing), and only then is the copy repaired.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use proxima_wire::message::{Outcome, Parsed};
use tokio::time::{Instant, sleep};

use super::{super::MissedWrites, RepairError, RepairPlan, RepairReport, UNPROVEN};
use crate::{
    config::schema::Rejoin,
    protocol::{CopySupport, Incarnation, Introduction, Protocol, Question},
};

/// How long old connections may take to go away.
const OLD_CONNECTIONS_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks at the list of connections.
const LOOK: Duration = Duration::from_millis(20);
/// Deletes under way at a time.
const BATCH: usize = 100;
/// Longer lists of connections are not compared.
const MOST: usize = 10_000;

/// An open connection to a server, logged in.
pub trait Exchange: Send {
    /// Our end of it; `None` if it has no address that the server could list.
    fn local(&self) -> Option<SocketAddr>;

    /// Sends requests.
    ///
    /// # Errors
    /// [`RepairError::Unreachable`]
    fn send(&mut self, requests: &[u8]) -> impl Future<Output = Result<(), RepairError>> + Send;

    /// Appends the whole reply to this command to `reply`.
    ///
    /// # Errors
    /// [`RepairError::Unreachable`]
    fn receive(
        &mut self,
        command: u16,
        reply: &mut Vec<u8>,
    ) -> impl Future<Output = Result<Outcome, RepairError>> + Send;
}

/// The connections that a server has from us.
#[derive(Debug)]
pub struct Connections {
    /// Their ends at our address, and at the one that we had, except that of the connection that asked;
    /// `None`: the server cannot list them.
    pub ends: Option<HashSet<SocketAddr>>,
    /// Our address; `None`: a Unix socket.
    pub from: Option<IpAddr>,
}

/// Asks a server and repairs its copy.
pub struct RepairClient<E> {
    exchange: E,
    protocol: &'static dyn Protocol,
    copied: &'static dyn CopySupport,
}

impl<E: Exchange> RepairClient<E> {
    /// A client for a server that speaks this protocol.
    pub fn new(exchange: E, protocol: &'static dyn Protocol, copied: &'static dyn CopySupport) -> Self {
        Self {
            exchange,
            protocol,
            copied,
        }
    }

    /// Our address, as the server sees it; `None`: a Unix socket.
    pub fn from(&self) -> Option<IpAddr> {
        self.exchange.local().map(|own| own.ip())
    }

    /// Asks which life of the server this is.
    ///
    /// # Errors
    /// The server does not answer, or does not say it.
    pub async fn introduction(&mut self) -> Result<Introduction, RepairError> {
        let reply = self.ask(self.copied.ask_introduction(), "who it is").await?;
        Ok(self.copied.introduction(&reply)?)
    }

    /// Asks which connections the server has from us; `before` is our address of another time.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn connections(&mut self, before: Option<IpAddr>) -> Result<Connections, RepairError> {
        // A server that answers this, but not the next question, cannot list its connections.
        self.introduction().await?;
        let from = self.from();
        let ours = [from, before.map(|ip| ip.to_canonical())];
        let ends = match (self.exchange.local(), self.listed().await) {
            (Some(own), Ok(listed)) if listed.contains(&own) => {
                let others = listed.into_iter().filter(|end| *end != own);
                Some(others.filter(|end| ours.contains(&Some(end.ip()))).collect())
            }
            _ => None,
        };
        let ends = ends.filter(|ends: &HashSet<_>| ends.len() <= MOST);
        Ok(Connections { ends, from })
    }

    /// How many connections has the server, this one included?
    ///
    /// # Errors
    /// The server does not answer, or does not list its connections.
    pub async fn connection_count(&mut self) -> Result<usize, RepairError> {
        let question = self.copied.ask_connections();
        let reply = self.ask(question, "the list of its connections").await?;
        Ok(self.copied.connection_count(&reply))
    }

    /// Repairs the copy, once our old connections to it are gone. `known` is the life in which its server was
    /// last met.
    ///
    /// # Errors
    /// Why it could not be repaired.
    pub async fn repair(
        &mut self,
        missed: &MissedWrites,
        rejoin: Rejoin,
        known: Incarnation,
    ) -> Result<RepairReport, RepairError> {
        let introduction = self.introduction().await?;
        let now = Instant::now().into_std();
        let plan = RepairPlan::new(missed, rejoin, known, introduction, now)?;
        if plan != RepairPlan::Nothing {
            self.wait_for_old_connections(missed).await?;
        }
        match &plan {
            RepairPlan::Nothing => {}
            RepairPlan::Keys(keys) => self.delete(keys).await?,
            // The question goes over the connection on which the server introduced itself: it cannot reach
            // another life.
            RepairPlan::Flush => {
                let flush = self.copied.flush().ok_or(RepairError::NeverFlushed)?;
                self.ask(flush, "a flush").await?;
            }
        }
        Ok(RepairReport {
            life: introduction.life,
            remedy: plan.remedy(),
        })
    }

    /// Sends a question and returns the whole reply to it. `what` names the question in messages.
    async fn ask(&mut self, question: Question, what: &'static str) -> Result<Vec<u8>, RepairError> {
        let (command, bytes) = question;
        self.exchange.send(bytes).await?;
        self.answer(command, what).await
    }

    async fn answer(&mut self, command: u16, question: &'static str) -> Result<Vec<u8>, RepairError> {
        let mut reply = Vec::new();
        let outcome = self.exchange.receive(command, &mut reply).await?;
        if !outcome.is_error() {
            return Ok(reply);
        }
        let line = reply.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let answer = line.escape_ascii().to_string();
        Err(RepairError::Refused { question, answer })
    }

    async fn listed(&mut self) -> Result<HashSet<SocketAddr>, RepairError> {
        let question = self.copied.ask_connections();
        let reply = self.ask(question, "the list of its connections").await?;
        Ok(self.copied.connections(&reply))
    }

    async fn wait_for_old_connections(&mut self, missed: &MissedWrites) -> Result<(), RepairError> {
        if missed.connections.is_empty() && !missed.unknown_connection {
            return Ok(());
        }
        let old: HashSet<SocketAddr> = missed.connections.iter().copied().collect();
        let end = Instant::now() + OLD_CONNECTIONS_TIMEOUT;
        loop {
            // At a Unix socket connections have no address, and memcached writes into its list whatever lies
            // in its memory there, which may be no reply at all: the list is not asked for where it proves
            // nothing.
            let own = self.exchange.local().filter(|_| !missed.unknown_connection);
            let listed = match own {
                None => HashSet::new(),
                Some(_) => match self.listed().await {
                    // Behind any other error the next reply would be taken for that to another question.
                    Err(RepairError::Refused { .. }) => HashSet::new(),
                    listed => listed?,
                },
            };
            if own.is_none_or(|own| !listed.contains(&own)) {
                // From this answer, or that to who it is, on: a frozen server has executed nothing until it
                // gave it.
                sleep(UNPROVEN).await;
                return Ok(());
            }
            let left = old.intersection(&listed).count();
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(RepairError::OldConnections(left));
            }
            sleep(LOOK).await;
        }
    }

    async fn delete(&mut self, keys: &[&[u8]]) -> Result<(), RepairError> {
        for batch in keys.chunks(BATCH) {
            let (mut requests, mut commands) = (Vec::new(), Vec::new());
            for key in batch {
                let begin = requests.len();
                self.copied.removal(key, &mut requests);
                if let Parsed::Head(removal) = self.protocol.head(&requests[begin..]) {
                    commands.push(removal.command);
                }
            }
            self.exchange.send(&requests).await?;
            for command in commands {
                self.answer(command, "a delete").await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use tokio::{runtime::Builder, time::timeout};

    use super::*;
    use crate::{copies::MissedKeys, protocols::Memcache};

    /// A server at a Unix socket, and what it is asked.
    #[derive(Default)]
    struct Unix(Arc<Mutex<Vec<u8>>>);

    impl Exchange for Unix {
        fn local(&self) -> Option<SocketAddr> {
            None
        }

        async fn send(&mut self, requests: &[u8]) -> Result<(), RepairError> {
            self.0.lock().unwrap().extend_from_slice(requests);
            Ok(())
        }

        async fn receive(&mut self, _: u16, reply: &mut Vec<u8>) -> Result<Outcome, RepairError> {
            let said = b"STAT pid 7\r\nSTAT uptime 9\r\nSTAT version 1.6.18\r\nSTAT total_items 3\r\nEND\r\n";
            reply.extend_from_slice(said);
            Ok(Outcome::Found)
        }
    }

    #[test]
    fn list_of_connections_is_not_asked_for_where_it_proves_nothing() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let unix = Unix::default();
        let asked = Arc::clone(&unix.0);
        let protocol = &Memcache::PLAIN;
        let mut client = RepairClient::new(unix, protocol, protocol.copy_support().unwrap());
        let mut missed = MissedWrites::default();
        missed.add_connection(None);
        missed.add(MissedKeys::everything());
        missed.missed_at(Instant::now().into_std());
        let known = Incarnation {
            pid: 7,
            uptime: Duration::from_secs(8),
        };
        let repaired = client.repair(&missed, Rejoin::Repair, known);
        let waits = runtime.block_on(async { timeout(Duration::from_millis(20), repaired).await });
        assert!(waits.is_err(), "it waits");
        assert_eq!(*asked.lock().unwrap(), b"stats\r\n");
    }
}
