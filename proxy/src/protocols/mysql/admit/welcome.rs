//! A client has proved who it is: its place among those of its user, its schema, and its session.

use proxima_wire::mysql::{
    AuthMore, Capabilities, OkPacket, Status,
    password::{CACHING_SHA2, FAST},
};

use super::{
    super::{
        error::{ACCESS_DENIED, TOO_MANY_CLIENTS},
        settings::Settings,
        state::Client,
        who::{Proof, Who},
    },
    attempt::ask_server,
    denied,
    step::{Claim, Step},
};
use crate::protocol::{Access, Admission, Admitting, Attempt, Door, Session, Terms};

/// A login that is nearly over.
pub(in crate::protocols::mysql) struct Pending {
    pub(super) claim: Claim,
    pub(super) proof: Proof,
    /// The number of the cached login, or of the attempt.
    pub(super) number: u64,
    /// The number of the next packet to the client.
    pub(super) sequence: u8,
    /// The attempt that a server decides on. `None`: the proxy has found the proof good.
    pub(super) attempt: Option<Attempt>,
}

impl Pending {
    pub(super) fn new(claim: Claim, proof: Proof, number: u64, sequence: u8) -> Self {
        Self {
            claim,
            proof,
            number,
            sequence,
            attempt: None,
        }
    }

    /// Bytes of memory that the client fills in it.
    pub(in crate::protocols::mysql) fn memory(&self) -> usize {
        size_of::<Self>() + self.claim.memory() + self.proof.password().map_or(0, <[u8]>::len)
    }
}

/// What a listener with this door serves to a user for whom this holds.
pub(in crate::protocols::mysql) fn door_of(door: Door, terms: Terms) -> Door {
    Door {
        is_eventual: terms.is_eventual.unwrap_or(door.is_eventual),
        ..door
    }
}

/// What holds for this user.
pub(in crate::protocols::mysql) fn terms(access: &Access, user: &[u8]) -> Terms {
    match access {
        Access::Accounts(accounts) => accounts.terms(user),
        Access::Open | Access::Pass => Terms::default(),
    }
}

/// The login at a server of this client.
pub(super) fn who(client: &Client, pending: &Pending) -> Who {
    Who {
        user: pending.claim.user.clone(),
        proof: pending.proof.clone(),
        capabilities: client.capabilities,
        collation: client.collation,
        number: pending.number,
        has_schema: !pending.claim.schema.is_empty(),
    }
}

/// The client is who it says that it is. A server is asked for its schema, unless one has told of that lately.
pub(super) fn admit(
    session: &mut Session,
    with: &Admitting<'_>,
    mut pending: Pending,
    used: usize,
    out: &mut Vec<u8>,
) -> Admission {
    let Pending { claim, .. } = &pending;
    let terms = terms(&session.access, &claim.user);
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    // A client that becomes another user, or the same once more, has left the place that it had.
    client.seat = None;
    client.seat = with.seats.take(&claim.user, terms.clients);
    if client.seat.is_none() {
        let user = String::from_utf8_lossy(&claim.user);
        let text = format!("User {user} already has as many clients as it may have at this proxy");
        return denied(TOO_MANY_CLIENTS, &text, pending.sequence, out);
    }
    let is_fast = client.step != Step::Asked;
    if claim.method == CACHING_SHA2 && is_fast {
        AuthMore { data: FAST }.append(pending.sequence, out);
        pending.sequence = pending.sequence.wrapping_add(1);
    }
    let schema = &pending.claim.schema;
    if schema.is_empty() || with.logins.has_schema(&pending.claim.user, schema, with.unix) {
        return finish(session, with, pending, used, out);
    }
    let number = with.logins.number();
    ask_server(session, pending, number, used)
}

/// The client is a user from now on, whose session begins.
pub(super) fn finish(
    session: &mut Session,
    with: &Admitting<'_>,
    pending: Pending,
    used: usize,
    out: &mut Vec<u8>,
) -> Admission {
    let terms = terms(&session.access, &pending.claim.user);
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let number = pending.number;
    if number != 0 && !with.logins.used(&pending.claim.user, number, with.unix) {
        let user = String::from_utf8_lossy(&pending.claim.user);
        let text = format!("Access denied for user '{user}' (using password: YES)");
        return denied(ACCESS_DENIED, &text, pending.sequence, out);
    }
    let who = who(client, &pending);
    session.login = who.encode();
    *client = Client {
        step: Step::Over,
        door: door_of(client.door, terms),
        salt: client.salt,
        capabilities: client.capabilities,
        collation: client.collation,
        reads: client.reads,
        who: Some(who),
        seat: client.seat.take(),
        settings: Settings::of_schema(&pending.claim.schema),
        status: Status::AUTOCOMMIT,
        ..Client::default()
    };
    OkPacket {
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    }
    .append(Capabilities::PROTOCOL_41, pending.sequence, out);
    Admission::Ready { used }
}
