//! A client whose password the proxy does not know says it, and a server decides.

use proxima_wire::{
    message::Reply,
    mysql::{
        AuthMore, ErrPacket, Header,
        password::{FULL, PUBLIC_KEY, reveal},
    },
};

use super::{
    super::{
        error::{ACCESS_DENIED, Error, NO_SCHEMA, is_of_account},
        pending::Pending,
        state::Client,
        step::{Claim, Step},
        who::{Proof, Who},
    },
    LONGEST, Said, denied,
    question::{ask_server, who},
    welcome::{admit, finish},
    wrong,
};
use crate::protocol::{Admission, Admitting, Heard, Session, Turn};

/// Asks a client that has come with the fast answer for the password itself.
pub(super) fn ask_password(
    client: &mut Client,
    claim: &Claim,
    said: Said<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    AuthMore { data: FULL }.append(said.sequence, out);
    client.step = Step::Password(claim.clone());
    Admission::More { used: said.used }
}

/// The client says its password, or asks for the key with which it encrypts that.
pub(super) fn password(
    session: &mut Session,
    with: &Admitting<'_>,
    claim: &Claim,
    said: Said<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let password = match with.key {
        _ if with.is_private => said.payload.strip_suffix(&[0]).map(<[u8]>::to_vec),
        Some(key) if said.payload == PUBLIC_KEY => {
            AuthMore { data: key.text() }.append(said.sequence, out);
            return Admission::More { used: said.used };
        }
        Some(key) => {
            let hidden = key.decrypt(said.payload);
            hidden.and_then(|hidden| reveal(&hidden, &client.salt))
        }
        None => None,
    };
    match password {
        Some(password) => begin(session, with, claim, &password, said, out),
        None => wrong(claim, said, out),
    }
}

/// Has a server decide whether the client may log in.
pub(super) fn begin(
    session: &mut Session,
    with: &Admitting<'_>,
    claim: &Claim,
    password: &[u8],
    said: Said<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    if claim.user.len() > LONGEST || password.len() > LONGEST {
        return wrong(claim, said, out);
    }
    let attempt = match with.logins.attempt(with.host, &claim.user, with.unix) {
        Turn::Now(attempt) => attempt,
        Turn::Later => return Admission::Later,
        Turn::Never => {
            let user = String::from_utf8_lossy(&claim.user);
            let text = format!(
                "Access denied for user '{user}': too many wrong passwords from this host; try again in a minute"
            );
            return denied(ACCESS_DENIED, &text, said.sequence, out);
        }
    };
    let proof = Proof::Password(password.to_vec());
    let mut pending = Pending::new(claim.clone(), proof, attempt.number(), said.sequence);
    pending.attempt = Some(attempt);
    let number = pending.number;
    ask_server(session, pending, number, said.used)
}

/// A server has answered, or none has.
pub(in crate::protocols::mysql) fn heard(
    session: &mut Session,
    with: &Admitting<'_>,
    heard: Heard<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let client = session.state.get_mut::<Client>();
    let Some(mut pending) = client.and_then(|client| client.pending.take()) else {
        return Admission::Denied;
    };
    let attempt = pending.attempt.take();
    let has_attempt = attempt.is_some();
    let said = match heard {
        Heard::Reply(reply, bytes) => error_in(reply, bytes),
        // Whether the schema is there, a user of the list is told with the first statement.
        Heard::Failed(_) if !has_attempt => return finish(session, with, *pending, 0, out),
        Heard::Failed(failed) => {
            return denied(Error::of(failed), &failed.to_string(), pending.sequence, out);
        }
    };
    let number = said.map(|error| error.code);
    let (is_good, has_schema) = match number {
        None => (true, true),
        Some(number) => (NO_SCHEMA.contains(&number), false),
    };
    if has_schema && !pending.claim.schema.is_empty() {
        with.logins
            .note_schema(&pending.claim.user, &pending.claim.schema, with.unix);
    }
    if let Some(attempt) = attempt {
        match number {
            _ if is_good => {
                let client = Client::of(session);
                let secret = pending.proof.password().unwrap_or_default();
                let words = |number| {
                    let who = client.map(|client| Who {
                        number,
                        has_schema: false,
                        ..who(client, &pending)
                    });
                    who.map_or_else(Vec::new, |who| who.encode())
                };
                pending.number = attempt.succeed(secret, words, with.unix);
            }
            Some(number) if is_of_account(number) => attempt.fail(with.unix),
            _ => {}
        }
    }
    match said {
        Some(error) => {
            ErrPacket {
                state: error.state.or(Some(*b"HY000")),
                ..error
            }
            .append(pending.sequence, out);
            Admission::Denied
        }
        None if has_attempt => admit(session, with, *pending, 0, out),
        None => finish(session, with, *pending, 0, out),
    }
}

/// The error that a server has answered. `None`: it has agreed.
fn error_in<'a>(reply: &Reply, bytes: &'a [u8]) -> Option<ErrPacket<'a>> {
    if !reply.outcome.is_error() {
        return None;
    }
    let payload = bytes.get(Header::LEN..).unwrap_or_default();
    Some(ErrPacket::read(payload).unwrap_or(ErrPacket {
        code: 1105,
        state: None,
        message: b"The server does not answer the login",
    }))
}
