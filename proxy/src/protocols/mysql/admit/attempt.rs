//! A client whose password the proxy does not know says it, and a server decides.

use proxima_wire::{
    message::Reply,
    mysql::{
        AuthMore, ErrPacket, Header,
        password::{PUBLIC_KEY, are_equal, reveal},
    },
};

use super::{
    super::{
        error::{ACCESS_DENIED, Error, NO_SCHEMA, is_of_account, is_of_room},
        identity::{Identity, Proof},
        pending::{Pending, Question},
        state::Client,
        step::Step,
    },
    Answer, LONGEST, account, denied,
    question::{ask_server, identity},
    welcome::{admit, finish},
    wrong,
};
use crate::protocol::{Admission, AdmissionContext, ServerAnswer, Session, Turn};

/// The client says its password, or asks for the key with which it encrypts that.
pub(super) fn password(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    answer: Answer<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    if with.is_private {
        return match answer.payload.strip_suffix(&[0]) {
            Some(password) => begin(session, with, answer, password, out),
            None => wrong(answer, out),
        };
    }
    match (with.key, session.state.get_mut::<Client>()) {
        (Some(key), Some(client)) if answer.payload == PUBLIC_KEY => {
            AuthMore { data: key.text() }.append(answer.sequence, out);
            // It is told once: a client that asks again and again gets no more.
            client.step = Step::Encrypted(answer.claim.clone());
            Admission::More { used: answer.used }
        }
        // A client may have had the key before.
        _ => encrypted(session, with, answer, out),
    }
}

/// The client says its password, encrypted.
pub(super) fn encrypted(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    answer: Answer<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    // To decrypt takes long, and is done once its turn has come.
    match with
        .logins
        .turn(with.host, &account(with, answer.claim), with.unix)
    {
        Turn::Now(()) => {}
        Turn::Later => return Admission::Later,
        Turn::Never => return too_many(answer, out),
    }
    let salt = Client::of(session).map(|client| client.salt);
    let hidden = with.key.and_then(|key| key.decrypt(answer.payload));
    let password = hidden.zip(salt).and_then(|(hidden, salt)| reveal(&hidden, &salt));
    match password {
        Some(password) => begin(session, with, answer, &password, out),
        None => wrong(answer, out),
    }
}

/// Has a server decide whether the client may log in with this password, unless it is known.
pub(super) fn begin(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    answer: Answer<'_>,
    password: &[u8],
    out: &mut Vec<u8>,
) -> Admission {
    let Answer { claim, .. } = answer;
    if claim.user.len() > LONGEST || password.len() > LONGEST {
        return wrong(answer, out);
    }
    let account = account(with, claim);
    let pending = |number| {
        let proof = Proof::Password(password.to_vec());
        Pending::new(claim.clone(), proof, number, answer.sequence)
    };
    if with.logins.is_denied(with.host, &account, with.unix) {
        return too_many(answer, out);
    }
    // Others of the same user may have been before it.
    let logins = with.logins.of(&account);
    if let Some(known) = logins.iter().find(|login| are_equal(&login.secret, password)) {
        return admit(session, with, pending(known.number), answer.used, out);
    }
    match with.logins.attempt(with.host, &account, with.unix) {
        Turn::Now(attempt) => {
            let pending = pending(attempt.number());
            ask_server(session, pending, Question::Login(attempt), answer.used)
        }
        Turn::Later => Admission::Later,
        Turn::Never => too_many(answer, out),
    }
}

/// Too many proofs were wrong.
pub(super) fn too_many(answer: Answer<'_>, out: &mut Vec<u8>) -> Admission {
    let user = String::from_utf8_lossy(&answer.claim.user);
    let text = format!(
        "Access denied for user '{user}': too many wrong passwords from this host; try again in a minute"
    );
    denied(ACCESS_DENIED, &text, answer.sequence, out)
}

/// A server has answered, or none has.
pub(in crate::protocols::mysql) fn heard(
    session: &mut Session,
    with: &AdmissionContext<'_>,
    heard: ServerAnswer<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let client = session.state.get_mut::<Client>();
    let Some(mut pending) = client.and_then(|client| client.pending.take()) else {
        return Admission::Denied;
    };
    let Some(question) = pending.question.take() else {
        return Admission::Denied;
    };
    let account = account(with, &pending.claim);
    let error = match (heard, &question) {
        (ServerAnswer::Reply(reply, bytes), _) => error_in(reply, bytes),
        // The client learns with its first statement whether the schema is there.
        (ServerAnswer::Failed(_), Question::Schema(_)) => return finish(session, with, *pending, 0, out),
        (ServerAnswer::Failed(failed), Question::Login(_)) => {
            return denied(Error::of(failed), &failed.to_string(), pending.sequence, out);
        }
    };
    let number = error.map(|error| error.code);
    if number.is_none() && !pending.claim.schema.is_empty() {
        with.logins
            .note_schema(&account, &pending.claim.schema, with.unix);
    }
    let is_new = match (question, number) {
        // An error about an unknown schema is told to a login that is good.
        (Question::Login(attempt), number) if number.is_none_or(|number| NO_SCHEMA.contains(&number)) => {
            let client = Client::of(session);
            let secret = pending.proof.password().unwrap_or_default();
            let words = |number| {
                let identity = client.map(|client| Identity {
                    number,
                    has_schema: false,
                    ..identity(client, &pending)
                });
                identity.map_or_else(Vec::new, |identity| identity.encode())
            };
            pending.number = attempt.succeed(secret, words, with.unix);
            true
        }
        // A server without room says nothing of the password.
        (Question::Login(attempt), Some(number)) if !is_of_room(number) => {
            attempt.fail(with.unix);
            true
        }
        (Question::Login(_), _) => true,
        (Question::Schema(_), Some(number)) => {
            if is_of_account(number) {
                with.logins.rejected_for_writes(pending.number);
            }
            false
        }
        (Question::Schema(_), None) => false,
    };
    match error {
        Some(error) => {
            ErrPacket {
                state: error.state.or(Some(*b"HY000")),
                ..error
            }
            .append(pending.sequence, out);
            Admission::Denied
        }
        None if is_new => admit(session, with, *pending, 0, out),
        None => finish(session, with, *pending, 0, out),
    }
}

/// The error that a server has answered; `None` if it has agreed.
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
