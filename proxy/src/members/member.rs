//! One server in a pool.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use socket2::SockAddr;

use super::{Distance, DistanceSource, Draining, Health, Pool, SelfDescription, ServerIdentity};
use crate::{
    config::schema::{Dedicated, KeepAlive, ServerPod},
    protocol::{
        Answerer, CopySupport, Credentials, End, MemberNote, Protocol, ReachedCount, Replier, Transform,
    },
    tls::Connector,
};

/// A member's number, the same in every snapshot for as long as the member lives. Workers find its lanes by
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u32);

/// One server, as every worker sees it.
pub struct Member {
    /// Its number.
    pub id: MemberId,
    /// Its identity, which every process knows it by.
    pub identity: ServerIdentity,
    /// The pool that names it.
    pub pool: Arc<Pool>,
    /// Its name in consistent hashing and for operators.
    pub name: String,
    /// The address as configured.
    pub address: String,
    /// The endpoint. `None`: its name has no address yet. It is not asked, and another member takes its place
    /// when there is one.
    pub socket: Option<SockAddr>,
    /// Share of the keys relative to the others; above 0.
    pub weight: f64,
    /// The failure domain. `None`: not known.
    pub zone: Option<String>,
    /// Its pod. `None`: the API server of Kubernetes has not named it.
    pub pod: Option<ServerPod>,
    /// How far it is from this process, where no node agent tells more.
    pub distance: Distance,
    /// The source of the distance.
    pub distance_source: DistanceSource,
    /// The protocol that it speaks.
    pub protocol: &'static dyn Protocol,
    /// Time for a reply.
    pub timeout: Duration,
    /// Time for a connection.
    pub connect_timeout: Duration,
    /// How the proxy logs in there; `None`: without a login.
    pub login: Option<Arc<Credentials>>,
    /// Limits on the connections to it that one client has for itself.
    pub dedicated: Dedicated,
    /// Whether workers connect to it before it is asked for anything.
    pub preconnect: bool,
    /// Whether the kernel looks after it while it is silent.
    pub keepalive: Option<KeepAlive>,
    /// Whether each connection begins with the question for its version.
    pub asks_version: bool,
    /// TLS with it; `None` for plain text.
    pub tls: Option<Arc<Connector>>,
    /// Where there is no TLS, a password may be encrypted with the key that it sends.
    pub may_encrypt: bool,
    /// How its protocol keeps copies, if it holds a copy of everything in its pool. `None`: it holds its
    /// share of the keys.
    pub copied: Option<&'static dyn CopySupport>,
    /// Whether it is given no new requests, and why.
    pub draining: Draining,
    /// How much it has of what its pool has counted.
    pub reached: ReachedCount,
    /// The note that its pool's state keeps at it.
    pub noted: MemberNote,
    /// Its description of itself.
    pub said: SelfDescription,
    /// The health, shared with every pool that names the same server.
    pub health: Arc<Health>,
}

impl Member {
    /// This member in an answer to a question of its pool's, at this position.
    pub fn answerer(&self, position: usize) -> Answerer<'_> {
        Answerer {
            position,
            address: &self.address,
            is_up: self.is_up(),
            drains: self.drains(),
            reached: &self.reached,
            noted: &self.noted,
        }
    }

    /// This member as the source of a reply.
    pub fn replier(&self) -> Replier<'_> {
        Replier {
            count: &self.pool.count,
            reached: &self.reached,
            noted: &self.noted,
        }
    }

    /// This member as the far end of a connection.
    pub fn end(&self) -> End<'_> {
        End::Server {
            pool: &self.pool.name,
            address: &self.address,
        }
    }

    /// Does the proxy log in with the same user and database as at the other? A changed password does not
    /// matter: connections that have logged in stay valid.
    pub fn has_login_of(&self, other: &Self) -> bool {
        let who = |member: &Self| {
            let login = member.login.as_deref();
            login.map_or((Vec::new(), 0), |login| (login.user.clone(), login.database))
        };
        who(self) == who(other)
    }

    /// Is TLS with it the same as with the other?
    pub fn has_tls_of(&self, other: &Self) -> bool {
        match (&self.tls, &other.tls) {
            (Some(own), Some(other)) => own.is_same(other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// The transform with which a connection to it begins; `None` if the connection begins in plain text.
    pub fn first_transform(&self) -> Option<Box<dyn Transform>> {
        match &self.tls {
            Some(tls) if !self.protocol.upgrades() => Some(tls.connect()),
            _ => self.protocol.transform(self.end()),
        }
    }

    /// The transform that begins with an upgrade in the login; `has_tls`: TLS is in place already. `None`
    /// without TLS.
    pub fn next_transform(&self, has_tls: bool) -> Option<Box<dyn Transform>> {
        match &self.tls {
            Some(tls) if !has_tls => Some(tls.connect()),
            _ => self.protocol.upgrade(self.end()),
        }
    }

    /// Whether it holds a copy of everything in its pool.
    #[inline]
    pub fn is_copy(&self) -> bool {
        self.copied.is_some()
    }

    /// Whether requests may be sent to this member.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.is_well() && !self.drains()
    }

    /// The same, were it not to be given anything new.
    pub fn is_well(&self) -> bool {
        self.health.is_up() || self.fails_open()
    }

    /// Whether it is given no new requests, because an operator has ordered it.
    #[inline]
    pub fn drains(&self) -> bool {
        self.draining.is_on()
    }

    /// Whether suspicion of it is disregarded. A refused connection never is.
    pub fn fails_open(&self) -> bool {
        self.pool.fail_open.load(Ordering::Relaxed) && !self.health.is_gone()
    }

    /// Why it may not be asked.
    pub fn refusal(&self) -> &'static str {
        match self.socket {
            Some(_) if self.drains() => "it drains, as an operator has ordered",
            Some(_) => "ejected",
            None => "ejected: its name does not resolve",
        }
    }

    /// The address of the endpoint. Two members on one server share it; a server whose name resolves
    /// elsewhere has another one.
    pub fn endpoint(&self) -> &str {
        &self.identity.address
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pool, self.name)
    }
}
