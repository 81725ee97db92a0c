//! Connecting of clients, and the logins that they use at servers.

use std::net::{IpAddr, Ipv6Addr};

use proxima_wire::message::Outcome;

use super::{Client, Slots, kept_session::KeptSession, stage::Stage};
use crate::{
    engine::{ClientId, Endpoint, Engine},
    members::{ClientSource, Locality},
    micros::Micros,
    protocol::{Failed, ProtocolSlot, Session},
    stream::Stream,
};

/// The size that a reply is taken for before the first has come, in bytes: 64 requests for the default share
/// of memory.
pub(super) const UNKNOWN_REPLY: usize = 16 * 1024;

impl Engine {
    /// Opens a client that has connected. `None`: no protocol is spoken at this listener any more.
    pub fn open_client(&mut self, listener: u16) -> Option<Endpoint> {
        let ProtocolSlot { protocol, first } = self.tree.spoken(usize::from(listener))?;
        let now = self.now;
        let stream = Stream {
            transform: self.first_transform(listener, protocol),
            ..Stream::default()
        };
        self.clients.opened += 1;
        let number = self.clients.opened * self.facts.workers.max(1) as u64 + self.facts.worker as u64;
        let id = self.clients.table.insert(|generation| Client {
            generation,
            beside: stream.transform_memory(),
            stream,
            listener,
            protocol,
            first_command: first,
            last_command: (first + protocol.commands().len() as u32).saturating_sub(1),
            session: match protocol.keeps_session() {
                true => KeptSession::kept(Session {
                    id: number,
                    access: self.tree.access(usize::from(listener)),
                    ..Session::NEW
                }),
                false => KeptSession::none(),
            },
            login: 0,
            locality: Locality::NONE,
            source: ClientSource::Unknown,
            port: 0,
            own: None,
            pushing: None,
            subscriptions: None,
            slots: Slots::default(),
            stage: Stage::Login,
            reply_size: UNKNOWN_REPLY,
            closing: false,
            failed: false,
            eof: false,
            awaits: None,
            retires: false,
            stalled: false,
            queued: false,
            waits: false,
            unsent: 0,
            charged: 0,
            half: now,
            since: now,
            active: now,
            stuck: Micros::ZERO,
            stuck_backlog: 0,
            behind: None,
        });
        self.admit(id, &[]);
        self.metrics.clients.accepted += 1;
        self.share_memory();
        Some(Endpoint::Client(id))
    }

    /// Follows the session of this client, which may have named another login. Returns `false` if there are
    /// too many.
    pub(super) fn follow_login(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        if self.servers.is_login(client.login, &client.session.login) {
            return true;
        }
        let by = host(client.source);
        if !self.servers.has_room_for_login(&client.session.login, by) {
            // Lanes of logins that no client uses any more may be idle.
            self.retire_logins();
        }
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let joined = self.servers.change_login(client.login, &client.session.login, by);
        client.login = joined.unwrap_or(0);
        if joined.is_none()
            && let Some(session) = client.session.get_mut()
        {
            session.login.clear();
        }
        joined.is_some()
    }

    /// The number of the login that this client's session has named; `None`: there are too many, and the
    /// client is closed.
    pub(crate) fn login_of(&mut self, id: ClientId) -> Option<u16> {
        if !self.follow_login(id) {
            self.reject_login(id);
            return None;
        }
        self.clients.table.get(id).map(|client| client.login)
    }

    /// Closes a client with an error because there are too many logins to add the client's.
    pub(super) fn reject_login(&mut self, id: ClientId) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        client.closing = true;
        let mut line = Vec::new();
        let failed = Failed::here(Outcome::Overloaded, "clients log in as too many");
        client.protocol.error(&client.session, &failed, &mut line);
        self.answer_here(id, &line, false);
    }
}

/// The host of a client, as far as it can be told from others. One host may have all addresses of a
/// network of IPv6.
pub(super) fn host(source: ClientSource) -> Option<IpAddr> {
    const NETWORK: u128 = !0 << 64;
    match source {
        ClientSource::Address(address) => Some(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            address => address,
        }),
        ClientSource::Unknown | ClientSource::Process(_) | ClientSource::Container(_) => None,
    }
}
