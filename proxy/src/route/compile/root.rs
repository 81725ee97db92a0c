//! The entry of a listener's requests, and their protocol.

use std::{cell::Cell, collections::BTreeSet, sync::Arc};

use super::{CompileError, consistency, maker::Maker, spoken};
use crate::{
    config::{
        routes::Keyed,
        schema::{self, Consistency, KnownUsers, PlainLogins, Reads, Route, RouteWords, Writes},
    },
    protocol::{Access, Accounts, Door, OneSecret, ReplyStyle, Terms},
    route::{
        handle::{Tap, TimedRequests},
        timing::Timing,
        tree::{Entry, Greeting, Leaf, Node, Root, Wait},
    },
    tls::{Acceptor, TlsError},
};

impl Maker<'_, '_> {
    /// The entry of the requests of listener number `number`, at `address`.
    pub(super) fn root(&mut self, number: u16, address: &str) -> Result<Root, CompileError> {
        let (config, protocols) = (self.compiler.config, self.compiler.protocols);
        let listener = config
            .listeners
            .iter()
            .find(|listener| listener.address == address);
        let (spoken, node) = match listener {
            Some(listener) => {
                let mut spoken = spoken(protocols, listener.protocol)?;
                self.protocol = spoken.protocol;
                let other = match listener.discovery {
                    Some(_) => spoken.protocol.announcing(),
                    None => spoken
                        .protocol
                        .with_reply_style(reply_style(listener.reply_style))
                        .or_else(|| {
                            let word = config.usual_consistency(listener).map(|(word, _)| word);
                            let door = door(listener.door, word.unwrap_or_default());
                            spoken.protocol.behind(door)
                        }),
                };
                spoken.protocol = other.unwrap_or(spoken.protocol);
                (spoken, self.node(&listener.route)?)
            }
            None => {
                let removed = Leaf::Error("this listener was removed".into());
                (protocols.default(), self.push(Node::Leaf(removed)))
            }
        };
        let tls = match listener {
            Some(listener) => self.tls(listener)?,
            None => None,
        };
        let password_key = match listener.map(|listener| &listener.access) {
            Some(schema::Access::Servers(PlainLogins::Rsa)) => {
                let key = self.registry.certificates().password_key();
                Some(key.map_err(|reason| no_tls(address, reason))?)
            }
            _ => None,
        };
        let (mut leaves, mut servers) = (Vec::new(), Vec::new());
        self.leaves(node, true, &mut leaves);
        self.leaves(node, false, &mut servers);
        let children = self.everywhere(node, &leaves)?;
        let members = leaves.iter().map(|&leaf| self.member_at(leaf).cloned());
        let members: Vec<_> = members.collect();
        let routes = Entry {
            node,
            is_plain: self.is_plain(node),
        };
        let usual = match config.slow_requests {
            Some(terms) => Entry {
                node: self.wrap(
                    TimedRequests::new(Timing::new(number, terms, &self.compiler.slow_requests)),
                    node,
                ),
                is_plain: false,
            },
            None => routes,
        };
        let tap = Tap {
            listener: number,
            samples: Arc::clone(&self.compiler.samples),
        };
        let tap = Entry {
            node: self.wrap(tap, usual.node),
            is_plain: false,
        };
        Ok(Root {
            entry: Cell::new(routes),
            usual,
            tap,
            access: listener.map_or(Access::Open, |listener| access(&listener.access)),
            tls,
            password_key,
            realm: listener.map_or_else(Default::default, |listener| realm(config, listener)),
            words: listener
                .map(|listener| config.route_words(&listener.route))
                .filter(|words| **words != RouteWords::Unsaid),
            is_local: address.starts_with("unix:"),
            greeting: Greeting::new(listener.and_then(|listener| listener.server_version.as_deref())),
            spoken,
            has_store: members.iter().any(Option::is_none),
            is_store: matches!(self.nodes.get(node.0 as usize), Some(Node::Leaf(Leaf::Embedded))),
            reach: members.into_iter().flatten().collect(),
            servers: servers
                .iter()
                .filter_map(|&leaf| self.member_at(leaf).cloned())
                .collect(),
            visits: self.numbered(&children),
            needs_values: self.has(
                node,
                &|node| matches!(node, Node::Script { handle, .. } if handle.needs_values()),
            ),
            may_hold: self.has(
                node,
                &|node| matches!(node, Node::Wrap { handle, .. } if handle.may_hold()),
            ),
            fanout: self.fanout(node),
            broadcast: self.push(Node::Gather {
                name: "everywhere",
                wait: Wait::All,
                children,
            }),
        })
    }

    /// TLS with the clients of this listener. Clients that are to say a password want it.
    fn tls(&self, listener: &schema::Listener) -> Result<Option<Arc<Acceptor>>, CompileError> {
        let certificates = self.registry.certificates();
        let acceptor = match (&listener.tls, &listener.access) {
            (Some(tls), _) => certificates.acceptor(tls),
            (None, schema::Access::Servers(_)) => certificates.own_acceptor(),
            (None, _) => return Ok(None),
        };
        acceptor
            .map(Some)
            .map_err(|reason| no_tls(&listener.address, reason))
    }

    /// Checks that this pool has the protocol of the listener.
    pub(super) fn speaks(&self, pool: &str) -> Result<(), CompileError> {
        let (listener, spec) = (self.protocol.name(), self.compiler.config.pools.get(pool));
        match spec
            .map(|pool| pool.protocol.0)
            .filter(|&other| other != listener)
        {
            Some(other) => Err(CompileError::TwoProtocols {
                listener,
                pool: pool.to_owned(),
                other,
            }),
            None => Ok(()),
        }
    }
}

/// The pools to which a listener leads, in one word; and whether the schema of a client chooses among them.
fn realm(config: &schema::Config, listener: &schema::Listener) -> (Box<str>, bool) {
    let pools: BTreeSet<&str> = config
        .pools_below(&listener.route)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let word = pools.into_iter().collect::<Vec<_>>().join("\0");
    let mut routes = config.routes_below(&listener.route).into_iter();
    let is_by_schema = |route: &Route| matches!(route, Route::Keyed(Keyed::BySchema(_), ..));
    (word.into(), routes.any(is_by_schema))
}

/// TLS with clients at this address cannot be set up.
fn no_tls(address: &str, reason: TlsError) -> CompileError {
    CompileError::Tls {
        address: address.to_owned(),
        reason,
    }
}

fn reply_style(reply_style: schema::ReplyStyle) -> ReplyStyle {
    match reply_style {
        schema::ReplyStyle::Own => ReplyStyle::Own,
        schema::ReplyStyle::Twemproxy { all_commands } => ReplyStyle::Twemproxy { all_commands },
        schema::ReplyStyle::Mcrouter { flush } => ReplyStyle::Mcrouter { flush },
    }
}

/// What the listener says, with how fresh reads are there.
fn door(door: schema::Door, word: Consistency) -> Door {
    Door {
        rejects_writes: door.writes == Writes::Rejected,
        reads_at_writer: door.reads == Reads::Writer,
        consistency: consistency::word(word),
        requires_tls: door.requires_tls,
    }
}

/// All users of the listener have this secret.
fn one(secret: Arc<[u8]>) -> Access {
    Access::Accounts(Arc::new(OneSecret::new(secret)))
}

/// What the clients of a listener must say. A password that was not read lets nobody in.
fn access(access: &schema::Access) -> Access {
    match access {
        schema::Access::Open => Access::Open,
        schema::Access::Pass | schema::Access::Servers(_) => Access::Pass,
        schema::Access::Users(users) => Access::Accounts(Arc::clone(&users.known) as Arc<dyn Accounts>),
        schema::Access::Password(password) => match &password.secret {
            Some(secret) => one(Arc::clone(secret.bytes())),
            None => one([].into()),
        },
    }
}

impl Accounts for KnownUsers {
    fn secret(&self, user: &[u8]) -> Option<&[u8]> {
        let Self(users) = self;
        users.get(user).map(|user| &**user.secret.bytes())
    }

    fn terms(&self, user: &[u8]) -> Terms {
        let Self(users) = self;
        users.get(user).map_or_else(Terms::default, |user| Terms {
            clients: user.clients,
            consistency: user.consistency.map(consistency::word),
        })
    }
}
