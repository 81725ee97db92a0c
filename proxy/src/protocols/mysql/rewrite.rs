//! Replies as clients read them: without what the proxy alone has asked for.

use proxima_wire::{
    message::{Outcome, Reply},
    mysql::{
        Capabilities, EofPacket, ErrPacket, Header, OkPacket, Status, Tracker, Trackers, append_schema,
        append_variable,
    },
};

use super::{
    error::{Error, READ_ONLY, READ_ONLY_TEXT, READ_ONLY_TRANSACTION},
    reply_end::{LastPacket, ReplyEnd},
};

/// Variables that servers report by default.
const REPORTED: [&str; 6] = [
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "redirect_url",
    "time_zone",
];

/// Appends the reply, or the part of one, as a client with these capabilities is to read it. `None` if it
/// stays as it is.
pub(super) fn reply(
    end: &ReplyEnd<'_>,
    reply: &Reply,
    client: Capabilities,
    out: &mut Vec<u8>,
) -> Option<Reply> {
    let sequence = end.packet().get(3).copied()?;
    match end.last_packet()? {
        LastPacket::Ok(ok) if ok.status.has(Status::SESSION_CHANGED) || !ok.trackers.bytes().is_empty() => {
            let mut trackers = Vec::new();
            if client.has(Capabilities::SESSION_TRACK) {
                ok.trackers.for_each(|tracker| keep(tracker, &mut trackers));
            }
            out.extend_from_slice(end.before());
            OkPacket {
                trackers: Trackers::read(&trackers).unwrap_or_default(),
                ..ok
            }
            .append(client, sequence, out);
        }
        LastPacket::Eof(eof) if eof.status.has(Status::SESSION_CHANGED) => {
            out.extend_from_slice(end.before());
            EofPacket {
                status: Status(eof.status.0 & !Status::SESSION_CHANGED.0),
                ..eof
            }
            .append(sequence, out);
        }
        _ => return None,
    }
    Some(Reply {
        head: out.len() as u32,
        ..*reply
    })
}

/// Appends a reply in which a server has rejected a write because of its transaction, as one that only reads
/// rejects it; `None` if it has not.
pub(super) fn rejected(end: &ReplyEnd<'_>, out: &mut Vec<u8>) -> Option<Reply> {
    let packet = end.packet();
    let error = ErrPacket::read(packet.get(Header::LEN..)?).ok()?;
    if error.code != READ_ONLY_TRANSACTION {
        return None;
    }
    out.extend_from_slice(end.before());
    READ_ONLY.append(packet[3], READ_ONLY_TEXT, out);
    Some(Reply::new(Outcome::ClientError, out.len()))
}

/// Appends a reply by which a read goes on to the server that takes writes: it has changed the session at
/// another.
pub(super) fn session_changed(out: &mut Vec<u8>) -> Option<Reply> {
    const TEXT: &str = "Cannot execute statement in a READ ONLY transaction: it changes the session";
    Error(READ_ONLY_TRANSACTION, *b"25006").append(1, TEXT, out);
    Some(Reply::new(Outcome::ClientError, out.len()))
}

/// Appends a tracker that servers have without being asked for more.
fn keep(tracker: Tracker<'_>, out: &mut Vec<u8>) {
    match tracker {
        Tracker::Variable { name, value } if REPORTED.iter().any(|word| word.as_bytes() == name) => {
            append_variable(name, value, out);
        }
        Tracker::Schema(schema) => append_schema(schema, out),
        _ => {}
    }
}
