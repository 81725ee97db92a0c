//! A client's login: the greeting, TLS if the client asks for it, and the proof of its password.
//!
//! Invariant: who is no user of the listener is told the same as a user with a wrong password, and nothing is
//! done for the one that is not done for the other.

use proxima_wire::mysql::{
    AuthMore, AuthSwitch, Capabilities, ChangeUser, Greeting, Header, Hello, LARGEST_PACKET, Login, OkPacket,
    SALT, Status,
    password::{self, CACHING_SHA2, FAST, NATIVE},
    sql::Mode,
};

use super::{
    accounts::Secret,
    error::{ACCESS_DENIED, BAD_HANDSHAKE, Error, NO_METHOD, TOO_MANY_CLIENTS},
    offer::Offer,
    settings::Settings,
    state::Client,
    step::{Claim, Step},
    who::{Proof, Who},
};
use crate::protocol::{Access, Admission, Admitting, Door, Session, Terms};

/// Takes a step.
pub(super) fn step(
    session: &mut Session,
    with: &Admitting<'_>,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Admission {
    let step = Client::of(session).map_or(Step::Greet, |client| client.step.clone());
    if step == Step::Greet {
        greet(session, with, out);
        return Admission::More { used: 0 };
    }
    if let Step::Again(claim) = step {
        let takes = secret(&session.access, &claim.user).takes(&claim.method);
        if let Some(client) = session.state.get_mut::<Client>() {
            let method = if takes { claim.method } else { NATIVE.to_vec() };
            ask(client, Claim { method, ..claim }, fresh(with), 1, out);
        }
        return Admission::More { used: 0 };
    }
    let Some((header, rest)) = bytes.split_first_chunk() else {
        return Admission::More { used: 0 };
    };
    let header = Header::of(*header);
    let is_answer = matches!(step, Step::Switched(_));
    if header.len == 0 && !is_answer || header.len == LARGEST_PACKET {
        return denied(BAD_HANDSHAKE, "Bad handshake", header.sequence, out);
    }
    let Some(payload) = rest.get(..header.len as usize) else {
        return Admission::More { used: 0 };
    };
    let used = Header::LEN + payload.len();
    let sequence = header.sequence.wrapping_add(1);
    if let Step::Switched(claim) = step {
        return prove(session, with, (&claim, payload), sequence, used, out);
    }
    match Hello::read(payload) {
        Ok(Hello::Tls(_)) if step == Step::Hear && with.offers_tls => {
            session
                .state
                .change(|client: &mut Client| client.step = Step::HearWithinTls);
            Admission::Upgrade { used }
        }
        Ok(Hello::Login(login)) => hello(session, with, &login, sequence, used, out),
        Ok(Hello::Tls(_)) | Err(_) => denied(BAD_HANDSHAKE, "Bad handshake", sequence, out),
    }
}

/// A client that was admitted says that it is somebody else, whom it is asked to prove next. Returns `false` if
/// that cannot be understood.
pub(super) fn change_user(client: &mut Client, message: &[u8]) -> bool {
    let payload = message.get(Header::LEN..).unwrap_or_default();
    let Ok(change) = ChangeUser::read(payload, client.capabilities) else {
        return false;
    };
    let method = match change.method {
        CACHING_SHA2 => CACHING_SHA2,
        _ => NATIVE,
    };
    if let Some(collation) = change.collation {
        client.collation = collation as u8;
    }
    client.step = Step::Again(Claim {
        user: change.user.to_vec(),
        schema: change.database.to_vec(),
        method: method.to_vec(),
    });
    true
}

/// Greets the client. The login begins.
fn greet(session: &mut Session, with: &Admitting<'_>, out: &mut Vec<u8>) {
    let salt = fresh(with);
    let Some(offer) = Offer::decode(with.greeting) else {
        return;
    };
    let rejects_writes = Client::of(session).is_some_and(|client| client.door.rejects_writes);
    // What one statement of a text hides, the next might use.
    let capabilities = match rejects_writes {
        true => offer.capabilities.without(Capabilities::MULTI_STATEMENTS),
        false => offer.capabilities,
    };
    let capabilities = match with.offers_tls {
        true => capabilities.with(Capabilities::TLS),
        false => capabilities.without(Capabilities::TLS),
    };
    Greeting {
        version: &offer.version,
        connection: session.id as u32,
        salt,
        capabilities,
        collation: offer.collation,
        status: Status::AUTOCOMMIT,
        method: NATIVE,
    }
    .append(out);
    session.plans_all = true;
    session.state.change(|client: &mut Client| {
        client.step = Step::Hear;
        client.salt = salt;
        client.capabilities = capabilities;
        client.reads = Mode {
            ansi_quotes: offer.ansi_quotes,
            no_backslash_escapes: offer.no_backslash_escapes,
            ..Mode::default()
        };
    });
}

/// A salt that nobody has had.
fn fresh(with: &Admitting<'_>) -> [u8; SALT] {
    let [a, b, c, _] = with.random;
    password::salt([a, b, c])
}

/// The client says who it is.
fn hello(
    session: &mut Session,
    with: &Admitting<'_>,
    login: &Login<'_>,
    sequence: u8,
    used: usize,
    out: &mut Vec<u8>,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    client.capabilities = client
        .capabilities
        .both(login.capabilities)
        .without(Capabilities::TLS);
    client.collation = login.collation;
    let claim = Claim {
        user: login.user.to_vec(),
        schema: login.database.to_vec(),
        method: match login.method {
            [] => NATIVE.to_vec(),
            other => other.to_vec(),
        },
    };
    let secret = secret(&session.access, &claim.user);
    if secret.takes(&claim.method) {
        return prove(session, with, (&claim, login.answer), sequence, used, out);
    }
    if !client.capabilities.has(Capabilities::PLUGIN_AUTH) {
        return denied(
            NO_METHOD,
            "The client does not name its login method",
            sequence,
            out,
        );
    }
    let salt = client.salt;
    let claim = Claim {
        method: NATIVE.to_vec(),
        ..claim
    };
    ask(client, claim, salt, sequence, out);
    Admission::More { used }
}

/// Asks the client to prove by another method who it is.
fn ask(client: &mut Client, claim: Claim, salt: [u8; SALT], sequence: u8, out: &mut Vec<u8>) {
    let data = [&salt[..], &[0]].concat();
    AuthSwitch {
        method: &claim.method,
        data: &data,
    }
    .append(sequence, out);
    client.salt = salt;
    client.step = Step::Switched(claim);
}

/// The client proves who it is.
fn prove(
    session: &mut Session,
    with: &Admitting<'_>,
    (claim, answer): (&Claim, &[u8]),
    sequence: u8,
    used: usize,
    out: &mut Vec<u8>,
) -> Admission {
    let secret = secret(&session.access, &claim.user);
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let is_user =
        matches!(&session.access, Access::Accounts(accounts) if accounts.secret(&claim.user).is_some());
    let proof = secret.verify(&claim.method, &client.salt, answer);
    let Some(proof) = proof.filter(|_| is_user) else {
        let user = String::from_utf8_lossy(&claim.user);
        let using = if answer.is_empty() { "NO" } else { "YES" };
        let text = format!("Access denied for user '{user}' (using password: {using})");
        return denied(ACCESS_DENIED, &text, sequence, out);
    };
    let terms = terms(&session.access, &claim.user);
    // A client that becomes another user, or the same once more, has left the place that it had.
    client.seat = None;
    client.seat = with.seats.take(&claim.user, terms.clients);
    if client.seat.is_none() {
        let user = String::from_utf8_lossy(&claim.user);
        let text = format!("User {user} already has as many clients as it may have at this proxy");
        return denied(TOO_MANY_CLIENTS, &text, sequence, out);
    }
    let mut sequence = sequence;
    if claim.method == CACHING_SHA2 {
        AuthMore { data: FAST }.append(sequence, out);
        sequence = sequence.wrapping_add(1);
    }
    welcome(session, claim, proof, terms);
    OkPacket {
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    }
    .append(Capabilities::PROTOCOL_41, sequence, out);
    Admission::Ready { used }
}

/// What is known of this user. Somebody who is none is asked as one with a password.
fn secret<'a>(access: &'a Access, user: &[u8]) -> Secret<'a> {
    let words = match access {
        Access::Accounts(accounts) => accounts.secret(user),
        Access::Open | Access::Pass => None,
    };
    Secret::of(words.unwrap_or(b"nobody"))
}

/// What a listener with this door serves to a user for whom this holds.
pub(super) fn door_of(door: Door, terms: Terms) -> Door {
    Door {
        is_eventual: terms.is_eventual.unwrap_or(door.is_eventual),
        ..door
    }
}

/// What holds for this user.
pub(super) fn terms(access: &Access, user: &[u8]) -> Terms {
    match access {
        Access::Accounts(accounts) => accounts.terms(user),
        Access::Open | Access::Pass => Terms::default(),
    }
}

/// The client is a user from now on, whose session begins.
fn welcome(session: &mut Session, claim: &Claim, proof: Proof, terms: Terms) {
    let Some(client) = session.state.get_mut::<Client>() else {
        return;
    };
    let who = Who {
        user: claim.user.clone(),
        proof,
        capabilities: client.capabilities,
        collation: client.collation,
        has_schema: !claim.schema.is_empty(),
    };
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
        settings: Settings::of_schema(&claim.schema),
        status: Status::AUTOCOMMIT,
        ..Client::default()
    };
}

fn denied(error: Error, text: &str, sequence: u8, out: &mut Vec<u8>) -> Admission {
    error.append(sequence, text, out);
    Admission::Denied
}
