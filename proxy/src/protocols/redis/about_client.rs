//! `CLIENT INFO`, and `CLIENT LIST`, which lists the client itself: the others are other clients' affair.

use proxima_wire::resp::{Args, integer};

use super::{
    access::SYNTAX,
    append_error,
    here::append_text,
    identity::{Identity, User},
    state::{self, LIBRARY, LIBRARY_VERSION, NAME},
};
use crate::protocol::{ConnectionFacts, Session, Subject};

/// Appends the reply.
pub(super) fn answer(session: &Session, message: &[u8], facts: &ConnectionFacts, out: &mut Vec<u8>) {
    match is_listed(session, message) {
        Ok(true) => append_text(session.form, &line(session, message, facts), out),
        Ok(false) => append_text(session.form, "", out),
        Err(text) if text.is_empty() => out.extend_from_slice(SYNTAX),
        Err(text) => append_error(&text, out),
    }
}

/// Does `CLIENT LIST` ask for this client too? An error without a text is one of syntax.
fn is_listed(session: &Session, message: &[u8]) -> Result<bool, String> {
    let words: Vec<&[u8]> = Args::of(message).skip(2).map(|arg| arg.of(message)).collect();
    match words[..] {
        [] => Ok(true),
        [word, kind] if word.eq_ignore_ascii_case(b"type") => match kind.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(!session.has_subscriptions),
            b"pubsub" => Ok(session.has_subscriptions),
            b"master" | b"primary" | b"replica" | b"slave" => Ok(false),
            _ => Err(format!(
                "ERR Unknown client type '{}'",
                String::from_utf8_lossy(kind)
            )),
        },
        [word, ref ids @ ..] if word.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
            let ids: Option<Vec<i64>> = ids.iter().map(|id| integer(id).filter(|&id| id > 0)).collect();
            let ids = ids.ok_or("ERR Invalid client ID")?;
            Ok(ids.contains(&(session.id as i64)))
        }
        _ => Err(String::new()),
    }
}

/// The line about a client, in the words and the order of servers.
fn line(session: &Session, message: &[u8], facts: &ConnectionFacts) -> String {
    let [name, library, version] = [NAME, LIBRARY, LIBRARY_VERSION]
        .map(|part| String::from_utf8_lossy(state::note(session, part)).into_owned());
    let identity = Identity::of(session);
    let user = match &identity.user {
        User::Named { user, .. } if !user.is_empty() => String::from_utf8_lossy(user).into_owned(),
        _ => "default".to_owned(),
    };
    // A Unix socket has no port, and both ends have its path.
    let (local, peer) = match facts.peer {
        Some(peer) => (facts.local.clone(), peer.to_string()),
        None => (format!("{}:0", facts.local), format!("{}:0", facts.local)),
    };
    let mut flags = String::new();
    if session.has_subscriptions {
        flags.push('P');
    }
    if facts.peer.is_none() {
        flags.push('U');
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let [channels, patterns, shards] =
        [Subject::Channel, Subject::Pattern, Subject::Shard].map(|subject| facts.subscriptions.of(subject));
    let words = Args::of(message).map(|arg| arg.len as usize).sum::<usize>();
    let command = match Args::of(message).nth(1) {
        Some(sub) => format!(
            "client|{}",
            String::from_utf8_lossy(sub.of(message)).to_lowercase()
        ),
        None => "client".to_owned(),
    };
    let [leaving, reply_buffer] = facts.leaving;
    format!(
        "id={} addr={peer} laddr={local} fd={} name={name} age={} idle={} flags={flags} db={} sub={channels} \
         psub={patterns} ssub={shards} multi=-1 qbuf={} qbuf-free={} argv-mem={words} multi-mem={} \
         rbs={reply_buffer} rbp={leaving} obl={leaving} oll={} omem={} tot-mem={} events=r cmd={command} \
         user={user} redir=-1 resp={} lib-name={library} lib-ver={version}\n",
        session.id,
        facts.descriptor,
        facts.age,
        facts.idle,
        identity.database.unwrap_or(session.reach.database),
        facts.received,
        facts.room,
        state::held(session).len(),
        usize::from(facts.held > 0),
        facts.held,
        facts.memory,
        session.form + 2,
    )
}
