//! What operators are told of each session: whose it is, and which connection it has, and why.
//!
//! Invariant: nothing of a request and no secret is told. What is told is of the few types of
//! [`SessionFacts`], none of which can hold a login or a message.

use std::net::{IpAddr, SocketAddr};

use super::Client;
use crate::{engine::Engine, members::ClientSource, upstream::LaneFacts};

/// The places that are looked at for one page: other clients wait meanwhile.
const PAGE: usize = 256;
/// The most bytes of a name. Servers take none that is longer; a longer one is cut.
const LONGEST: usize = 256;

/// The sessions that are wanted. `None`: it does not matter.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// The name of their protocol.
    pub protocol: &'static str,
    /// Their user.
    pub user: Option<Vec<u8>>,
    /// The word for their state.
    pub state: Option<String>,
    /// The pool of the server to which they have a connection.
    pub pool: Option<String>,
}

/// Some of a worker's sessions.
#[derive(Debug, Default)]
pub struct SessionPage {
    /// Those that are wanted.
    pub sessions: Vec<SessionFacts>,
    /// The first place of the next page; `None`: there is no other one.
    pub next: Option<usize>,
}

/// The session of a client that has logged in.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// Its number, which no other session of the process has.
    pub number: u64,
    /// Its user.
    pub user: String,
    /// The address of the client; `None` for a client of a Unix socket.
    pub client: Option<SocketAddr>,
    /// The schema that it uses; empty: none.
    pub schema: String,
    /// The reason why it keeps a connection, or the word for one that keeps none.
    pub state: &'static str,
    /// The connection to a server that it has now.
    pub lane: Option<LaneFacts>,
}

impl Engine {
    /// The sessions of the clients in the places of one page.
    pub fn list_sessions(&self, query: &SessionQuery, from: usize) -> SessionPage {
        let (table, to) = (&self.clients.table, from.saturating_add(PAGE));
        let clients = table.range(from..to).map(|(_, client)| client);
        SessionPage {
            sessions: clients
                .filter_map(|client| self.session_facts(query, client))
                .collect(),
            next: (to < table.places()).then_some(to),
        }
    }

    /// The facts about the session of this client; `None` if it is not wanted, or has no state to tell.
    fn session_facts(&self, query: &SessionQuery, client: &Client) -> Option<SessionFacts> {
        let (protocol, session) = (client.protocol, &client.session);
        if protocol.name() != query.protocol {
            return None;
        }
        let (state, user) = (protocol.session_state(session)?, protocol.user(session));
        if query.state.as_ref().is_some_and(|wanted| wanted != state)
            || query.user.as_ref().is_some_and(|wanted| wanted != user)
        {
            return None;
        }
        let lane = client.own.and_then(|own| self.servers.lane_facts(own, self.now));
        let pool = lane.as_ref().map(|lane| &*lane.member.pool.name);
        if query.pool.is_some() && query.pool.as_deref() != pool {
            return None;
        }
        Some(SessionFacts {
            number: session.id,
            user: text(user),
            client: address(client).map(|address| SocketAddr::new(address, client.port)),
            schema: text(protocol.schema(session, b"")),
            state,
            lane,
        })
    }
}

fn address(client: &Client) -> Option<IpAddr> {
    match client.source {
        ClientSource::Address(address) => Some(address.to_canonical()),
        ClientSource::Unknown | ClientSource::Process(_) | ClientSource::Container(_) => None,
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(LONGEST)]).into_owned()
}
