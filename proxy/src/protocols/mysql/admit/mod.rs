//! A client's login: the greeting, TLS if the client asks for it, and the proof of its password.
//!
//! ```text
//!  greet ─▶ hello ─▶ proof ──────────────────▶ welcome
//!             └▶ another method ─▶ │  ▲ list, or cache      │ a schema that nobody has seen
//!                                  ▼  │                     ▼
//!                     password ─▶ attempt ─▶ a server ◀─────┘
//! ```
//!
//! Invariant: who is no user of the listener is told the same as a user with a wrong password, and nothing is
//! done for the one that is not done for the other.

mod attempt;
mod proof;
mod question;
mod secret;
mod welcome;

use proxima_wire::mysql::{
    AuthSwitch, Capabilities, ChangeUser, Greeting, Header, Hello, LARGEST_PACKET, Login, SALT, Status,
    password::{self, CACHING_SHA2, CLEAR, NATIVE},
    sql::Mode,
};

use self::proof::takes;
pub(super) use self::{
    attempt::heard,
    welcome::{door_of, terms},
};
use super::{
    error::{ACCESS_DENIED, BAD_HANDSHAKE, Error, NEEDS_TLS, NO_METHOD},
    offer::Offer,
    state::Client,
    step::{Claim, Step},
};
use crate::protocol::{Access, Account, Admission, AdmissionContext, Session};

/// Bytes of the longest name of a user, and of the longest password. Servers take shorter ones.
const LONGEST: usize = 1024;

/// The answer of a client that claims to be a user.
#[derive(Clone, Copy)]
struct Answer<'a> {
    claim: &'a Claim,
    payload: &'a [u8],
    /// Its bytes with the head.
    used: usize,
    /// The number of the packet that answers it.
    sequence: u8,
}

/// Takes a step.
pub(super) fn step(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Admission {
    let step = Client::of(session).map_or(Step::Greet, |client| client.step.clone());
    if step == Step::Greet {
        greet(session, with, out);
        return Admission::More { used: 0 };
    }
    if let Step::Again(claim) = step {
        let takes = takes(&session.access, &claim.user, &claim.method, with.is_private);
        let method = if takes {
            claim.method
        } else {
            first_method(&session.access).to_vec()
        };
        if let Some(client) = session.state.get_mut::<Client>() {
            ask(client, Claim { method, ..claim }, fresh(with), 1, out);
        }
        return Admission::More { used: 0 };
    }
    let Some((header, rest)) = bytes.split_first_chunk() else {
        return Admission::More { used: 0 };
    };
    let header = Header::of(*header);
    let is_answer = matches!(step, Step::Switched(_) | Step::Password(_) | Step::Encrypted(_));
    if header.len == 0 && !is_answer || header.len == LARGEST_PACKET {
        return denied(BAD_HANDSHAKE, "Bad handshake", header.sequence, out);
    }
    let Some(payload) = rest.get(..header.len as usize) else {
        return Admission::More { used: 0 };
    };
    let (used, sequence) = (Header::LEN + payload.len(), header.sequence.wrapping_add(1));
    if let Step::Switched(claim) | Step::Password(claim) | Step::Encrypted(claim) = &step {
        let answer = Answer {
            claim,
            payload,
            used,
            sequence,
        };
        return match step {
            Step::Switched(_) => proof::prove(session, with, answer, out),
            Step::Password(_) => attempt::password(session, with, answer, out),
            _ => attempt::encrypted(session, with, answer, out),
        };
    }
    match Hello::read(payload) {
        Ok(Hello::Tls(_)) if step == Step::Hear && with.offers_tls => {
            session
                .state
                .change(|client: &mut Client| client.step = Step::HearWithinTls);
            Admission::Upgrade { used }
        }
        Ok(Hello::Login(login)) => hello(session, with, &login, (used, sequence), out),
        Ok(Hello::Tls(_)) | Err(_) => denied(BAD_HANDSHAKE, "Bad handshake", sequence, out),
    }
}

/// A client that was admitted claims to be another user, which it is asked to prove next. Returns `false` if
/// that cannot be understood.
pub(super) fn change_user(client: &mut Client, message: &[u8]) -> bool {
    let payload = message.get(Header::LEN..).unwrap_or_default();
    let Ok(change) = ChangeUser::read(payload, client.capabilities) else {
        return false;
    };
    let method = match change.method {
        CACHING_SHA2 => CACHING_SHA2,
        CLEAR => CLEAR,
        _ => NATIVE,
    };
    if let Some(collation) = change.collation {
        client.collation = collation as u8;
    }
    client.step = Step::Again(Claim {
        user: unquoted(change.user).to_vec(),
        schema: change.database.to_vec(),
        method: method.to_vec(),
    });
    true
}

/// Greets the client. The login begins.
fn greet(session: &mut Session, with: &AdmissionContext<'_>, out: &mut Vec<u8>) {
    let salt = fresh(with);
    let Some(offer) = Offer::decode(with.greeting) else {
        return;
    };
    let rejects_writes = Client::of(session).is_some_and(|client| client.door.rejects_writes);
    // The next statement of a text might use what the one before hides.
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

/// A salt that is new and cannot be predicted.
fn fresh(with: &AdmissionContext<'_>) -> [u8; SALT] {
    let mut bytes = [0; 24];
    let [a, b, c, _] = with.random;
    if aws_lc_rs::rand::fill(&mut bytes).is_err() {
        return password::salt([a, b, c]);
    }
    let word = |at: usize| {
        bytes[at..]
            .first_chunk()
            .map_or(a, |word| u64::from_le_bytes(*word))
    };
    password::salt([word(0), word(8), word(16)])
}

/// The name of a user as servers take it: without one pair of quotes around it.
fn unquoted(name: &[u8]) -> &[u8] {
    match name {
        [b'\'', inner @ .., b'\''] => inner,
        name => name,
    }
}

/// The account that the client wants to be.
fn account(with: &AdmissionContext<'_>, claim: &Claim) -> Account {
    let mut realm = with.realm.as_bytes().to_vec();
    if with.has_realm_by_schema {
        realm.push(0);
        realm.extend_from_slice(&claim.schema);
    }
    Account::new(&realm, &claim.user)
}

/// The client says who it is.
fn hello(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    login: &Login<'_>,
    (used, sequence): (usize, u8),
    out: &mut Vec<u8>,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    if client.door.requires_tls && !with.is_private {
        let text = "Connections using insecure transport are prohibited here: the listener requires TLS";
        return denied(NEEDS_TLS, text, sequence, out);
    }
    client.capabilities = client
        .capabilities
        .both(login.capabilities)
        .without(Capabilities::TLS);
    client.collation = login.collation;
    let claim = Claim {
        user: unquoted(login.user).to_vec(),
        schema: login.database.to_vec(),
        method: match login.method {
            [] => NATIVE.to_vec(),
            other => other.to_vec(),
        },
    };
    // A client of MySQL's own library begins with this method, and waits for its salt: the greeting names
    // another one.
    if claim.method == CACHING_SHA2
        && login.answer.is_empty()
        && client.capabilities.has(Capabilities::PLUGIN_AUTH)
        && takes(&session.access, &claim.user, &claim.method, with.is_private)
    {
        ask(client, claim, fresh(with), sequence, out);
        return Admission::More { used };
    }
    if takes(&session.access, &claim.user, &claim.method, with.is_private) {
        let answer = Answer {
            claim: &claim,
            payload: login.answer,
            used,
            sequence,
        };
        return proof::prove(session, with, answer, out);
    }
    if !client.capabilities.has(Capabilities::PLUGIN_AUTH) {
        return no_method(sequence, out);
    }
    let (salt, method) = (client.salt, first_method(&session.access).to_vec());
    ask(client, Claim { method, ..claim }, salt, sequence, out);
    Admission::More { used }
}

/// The method by which a client is asked for its proof that comes with one which is not served.
fn first_method(access: &Access) -> &'static [u8] {
    match access {
        // Only this one leads to the password itself.
        Access::Pass => CACHING_SHA2,
        Access::Open | Access::Accounts(_) => NATIVE,
    }
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

/// The client is not who it says that it is.
fn wrong(answer: Answer<'_>, out: &mut Vec<u8>) -> Admission {
    let user = String::from_utf8_lossy(&answer.claim.user);
    let using = if answer.payload.is_empty() { "NO" } else { "YES" };
    let text = format!("Access denied for user '{user}' (using password: {using})");
    denied(ACCESS_DENIED, &text, answer.sequence, out)
}

/// A client that cannot be asked to use another method.
fn no_method(sequence: u8, out: &mut Vec<u8>) -> Admission {
    denied(
        NO_METHOD,
        "The client does not name its login method",
        sequence,
        out,
    )
}

fn denied(error: Error, text: &str, sequence: u8, out: &mut Vec<u8>) -> Admission {
    error.append(sequence, text, out);
    Admission::Denied
}
