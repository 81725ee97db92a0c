//! A client has proved who it is: its seat among the clients of its user, its schema, and its session.

use proxima_wire::mysql::{
    AuthMore, Capabilities, OkPacket, Status,
    password::{CACHING_SHA2, FAST},
};

use super::{
    super::{
        error::{ACCESS_DENIED, TOO_MANY_CLIENTS},
        pending::{Pending, Question},
        settings::Settings,
        state::Client,
        step::Step,
    },
    account, denied,
    question::{ask_server, identity},
};
use crate::protocol::{Access, Admission, AdmissionContext, Door, Session, Terms, Turn};

/// The door for a user with these terms at a listener with this door.
pub(in crate::protocols::mysql) fn door_of(door: Door, terms: Terms) -> Door {
    Door {
        consistency: terms.consistency.unwrap_or(door.consistency),
        ..door
    }
}

/// The terms of this user.
pub(in crate::protocols::mysql) fn terms(access: &Access, user: &[u8]) -> Terms {
    match access {
        Access::Accounts(accounts) => accounts.terms(user),
        Access::Open | Access::Pass => Terms::default(),
    }
}

/// The client is who it says that it is. A server is asked for its schema, unless one has told of that
/// lately.
pub(super) fn admit(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    mut pending: Pending,
    used: usize,
    out: &mut Vec<u8>,
) -> Admission {
    let Pending { claim, .. } = &pending;
    let account = account(with, claim);
    // It is not known yet whether the schema is there. One client of a user asks for it, and others are told.
    let question = match &claim.schema[..] {
        [] => None,
        schema if with.logins.has_schema(&account, schema, with.unix) => None,
        _ => match with.logins.attempt(with.host, &account, with.unix) {
            Turn::Now(attempt) => Some(Question::Schema(attempt)),
            // A client that has proved its password does not wait for other clients' attempts.
            Turn::Later if with.logins.is_crowded() => None,
            Turn::Later => return Admission::Later,
            Turn::Never => None,
        },
    };
    let terms = terms(&session.access, &claim.user);
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    if let Some(doubt) = client.doubt.take() {
        doubt.clear();
    }
    // A client that becomes another user, or the same once more, gives its seat back.
    client.user_connection = None;
    client.user_connection = with.user_connections.take(&claim.user, terms.clients);
    if client.user_connection.is_none() {
        let user = String::from_utf8_lossy(&claim.user);
        let text = format!("User {user} already has as many clients as it may have at this proxy");
        return denied(TOO_MANY_CLIENTS, &text, pending.sequence, out);
    }
    let has_password = pending
        .proof
        .password()
        .is_none_or(|password| !password.is_empty());
    let is_fast = !matches!(client.step, Step::Asked | Step::Password(_) | Step::Encrypted(_));
    if claim.method == CACHING_SHA2 && is_fast && has_password {
        AuthMore { data: FAST }.append(pending.sequence, out);
        pending.sequence = pending.sequence.wrapping_add(1);
    }
    match question {
        Some(question) => ask_server(session, pending, question, used),
        None => finish(session, with, pending, used, out),
    }
}

/// The client is a user from now on, whose session begins.
pub(super) fn finish(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    pending: Pending,
    used: usize,
    out: &mut Vec<u8>,
) -> Admission {
    let terms = terms(&session.access, &pending.claim.user);
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let number = pending.number;
    if number != 0
        && !with
            .logins
            .used(with.host, &account(with, &pending.claim), number, with.unix)
    {
        let user = String::from_utf8_lossy(&pending.claim.user);
        let text = format!("Access denied for user '{user}' (using password: YES)");
        return denied(ACCESS_DENIED, &text, pending.sequence, out);
    }
    let identity = identity(client, &pending);
    session.login = identity.encode();
    *client = Client {
        step: Step::Over,
        door: door_of(client.door, terms),
        salt: client.salt,
        capabilities: client.capabilities,
        collation: client.collation,
        reads: client.reads,
        identity: Some(identity),
        user_connection: client.user_connection.take(),
        settings: Settings::of_schema(&pending.claim.schema),
        status: Status::AUTOCOMMIT,
        lives: client.lives.wrapping_add(1),
        ..Client::default()
    };
    OkPacket {
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    }
    .append(Capabilities::PROTOCOL_41, pending.sequence, out);
    Admission::Ready { used }
}
