//! A client's login: the greeting, its steps, and what a server is asked meanwhile.
//!
//! Invariant: until a login is over, nothing that the client has sent is taken for a request, and no longer
//! than `limits.request_timeout`.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Parsed, Request};

use super::{Register, WHOLE, open::host, stage::Stage};
use crate::{
    engine::{ClientId, Endpoint, Engine, ReplyTo, Sleeper},
    micros::Micros,
    protocol::{Admission, AdmissionContext, Failed, ServerAnswer, Session},
    route::{Answer, Tree, Walk},
};

/// The time after which a step is taken again that has to wait for others.
const RETRY: Micros = Micros::millis(20);

/// The parts of a listener and of the process that the login of a client needs.
struct Facts {
    tree: Rc<Tree>,
    register: Arc<Register>,
    greeting: Arc<[u8]>,
}

impl Engine {
    /// Takes a step of the login. Returns the bytes used; `None`: more bytes are needed.
    pub(super) fn admit(&mut self, id: ClientId, bytes: &[u8]) -> Option<usize> {
        let facts = self.facts_for_login(id);
        let with = self.admitting(id, &facts)?;
        let client = self.clients.table.get_mut(id)?;
        let said = client.stream.out.len();
        let step = client.protocol.admit(
            client.session.or(&mut Session::default()),
            &with,
            bytes,
            &mut client.stream.out,
        );
        let spoke = client.stream.out.len() > said;
        let used = self.follow_admission(id, step, bytes);
        let ends = self.clients.table.get(id).is_some_and(|client| client.closing);
        if spoke || ends {
            self.flush_later(Endpoint::Client(id));
        }
        used
    }

    /// A login begins anew.
    pub(super) fn admit_again(&mut self, id: ClientId) {
        if let Some(client) = self.clients.table.get_mut(id) {
            client.stage = Stage::Login;
            client.half = self.now;
        }
        self.admit(id, &[]);
    }

    /// A server has answered what a login has asked.
    pub(crate) fn admission_answered(&mut self, id: ClientId, answer: &Answer<'_>) {
        let facts = self.facts_for_login(id);
        let Some(with) = self.admitting(id, &facts) else {
            return;
        };
        let client = self.clients.table.get_mut(id);
        let Some(client) = client.filter(|client| matches!(client.stage, Stage::Asking)) else {
            return;
        };
        client.stage = Stage::Login;
        let heard = match answer {
            Answer::Reply(reply, bytes) => ServerAnswer::Reply(reply, bytes),
            Answer::Failed(failed) => ServerAnswer::Failed(failed),
        };
        let step = client.protocol.heard(
            client.session.or(&mut Session::default()),
            &with,
            heard,
            &mut client.stream.out,
        );
        self.follow_admission(id, step, &[]);
        self.flush_later(Endpoint::Client(id));
        // What the client has sent meanwhile is taken now.
        self.requeue(id);
    }

    /// The facts for this client's login.
    fn facts_for_login(&self, id: ClientId) -> Facts {
        let client = self.clients.table.get(id);
        let greeting = client.map(|client| self.tree.greeting(usize::from(client.listener)));
        Facts {
            tree: Rc::clone(&self.tree),
            register: Arc::clone(self.clients.register()),
            greeting: greeting.unwrap_or_default(),
        }
    }

    /// The context of a step of this client's login.
    fn admitting<'a>(&mut self, id: ClientId, facts: &'a Facts) -> Option<AdmissionContext<'a>> {
        let client = self.clients.table.get(id)?;
        let listener = usize::from(client.listener);
        let is_plain = client.stream.transform.is_none();
        let (realm, has_realm_by_schema) = facts.tree.realm(listener);
        Some(AdmissionContext {
            greeting: &facts.greeting,
            user_connections: &facts.register.user_connections,
            logins: &facts.register.logins,
            key: facts.tree.password_key(listener),
            realm,
            has_realm_by_schema,
            host: host(client.source),
            random: [(); 4].map(|()| self.random.bits()),
            unix: self.unix().0,
            offers_tls: is_plain && facts.tree.tls(listener).is_some(),
            is_private: !is_plain || facts.tree.is_local(listener),
            reach: facts.tree.reach_of(listener),
        })
    }

    /// Follows what a step of the login came to. Returns the bytes used; `None`: more bytes are needed.
    fn follow_admission(&mut self, id: ClientId, step: Admission, bytes: &[u8]) -> Option<usize> {
        let client = self.clients.table.get_mut(id)?;
        match step {
            // A login that is not understood within the size of a request never will be.
            Admission::More { used: 0 } if bytes.len() as u64 > WHOLE => {
                client.closing = true;
                Some(0)
            }
            Admission::More { used } => Some(used).filter(|&used| used > 0),
            Admission::Later => {
                client.stalled = true;
                self.timers.wake(self.now + RETRY, Sleeper::Client(id));
                None
            }
            Admission::Ready { used } => {
                client.stage = Stage::Requests;
                client.half = Micros::NEVER;
                if !self.follow_login(id) {
                    self.reject_login(id);
                }
                Some(used)
            }
            Admission::Ask { used, request } => {
                client.stage = Stage::Asking;
                self.ask_for_admission(id, &request);
                Some(used)
            }
            Admission::Upgrade { used } => self.encrypt(id, bytes, used),
            Admission::Denied => {
                client.close_as_failed();
                Some(0)
            }
        }
    }

    /// Asks a server what the login of a client depends on, as that client would.
    fn ask_for_admission(&mut self, id: ClientId, message: &[u8]) {
        let to = ReplyTo::Admission { client: id };
        if self.login_of(id).is_none() {
            return;
        }
        let tree = Rc::clone(&self.tree);
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let (origin, protocol) = (client.origin(id), client.protocol);
        let root = tree.root(usize::from(origin.listener));
        let (Some(root), Parsed::Head(request)) = (root, protocol.head(message)) else {
            let what = "its listener leads nowhere, or nothing can be asked";
            return self.fail(to, &Failed::here(Outcome::LocalError, what));
        };
        let request = &Request {
            class: protocol.acts_as(&request, message),
            ..request
        };
        let walk = Walk {
            tree: &tree,
            origin,
            request,
            message,
            to,
        };
        self.descend(|engine| engine.walk(root, &walk));
    }
}
