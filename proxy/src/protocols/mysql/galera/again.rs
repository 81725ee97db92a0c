//! What a server's answer says of a request that may be given to a server once more.
//!
//! Invariant: a write is given to a server again only if the first one says that it has not run, or that it
//! was rolled back whole.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proxima_wire::mysql::{ErrPacket, Header};

use super::super::error::{READ_ONLY_TRANSACTION, is_read_only};

/// The reason why a request is given to a server again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Nothing of it was sent.
    Unsent,
    /// It was a read, and its server is gone.
    Lost,
    /// The server takes nothing, or no writes, and has not run it.
    Rejected,
    /// It was planned as a read, and writes.
    Writes,
    /// The reader does not have what the read needs.
    Behind,
    /// It was rolled back, as another change of the same rows came first, or has kept it waiting.
    Conflict,
}

impl Again {
    /// All reasons, with their words in metrics.
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Unsent, "unsent"),
        (Self::Lost, "lost"),
        (Self::Rejected, "rejected"),
        (Self::Writes, "writes"),
        (Self::Behind, "behind"),
        (Self::Conflict, "conflict"),
    ];

    /// The reason that this reply to a read, or to something else, gives.
    pub(super) fn of(reply: &[u8], is_read: bool) -> Option<Self> {
        let payload = reply
            .get(Header::LEN..)
            .filter(|payload| payload.first() == Some(&0xff))?;
        let error = ErrPacket::read(payload).ok()?;
        match error.code {
            1047 if error.message.starts_with(b"WSREP") => Some(Self::Rejected),
            1290 if is_read_only(error.message) => Some(Self::Rejected),
            READ_ONLY_TRANSACTION => is_read.then_some(Self::Writes),
            // It could not wait for the others in time. A reader has not heard yet of the user, the new
            // password, the schema or its grant: a login and a change of the schema wait for no other server.
            1205 | 1044 | 1045 | 1049 if is_read => Some(Self::Behind),
            1205 | 1213 => Some(Self::Conflict),
            _ => None,
        }
    }
}

/// How often requests were given to a server again, by the reason.
#[derive(Debug, Default)]
pub(super) struct AgainCounts([AtomicU64; Again::ALL.len()]);

impl AgainCounts {
    /// Counts one more.
    pub(super) fn add(&self, why: Again) {
        let counts = Again::ALL.iter().zip(&self.0);
        for (_, count) in counts.filter(|((one, _), _)| *one == why) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// The numbers, by the words of the reasons.
    pub(super) fn get(&self) -> Vec<(&'static str, u64)> {
        let counts = Again::ALL.iter().zip(&self.0);
        counts
            .map(|((_, word), count)| (*word, count.load(Relaxed)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::append_packet;

    use super::*;

    fn reply(code: u16, text: &str) -> Vec<u8> {
        let mut reply = Vec::new();
        append_packet(1, &mut reply, |out| {
            out.push(0xff);
            out.extend_from_slice(&code.to_le_bytes());
            out.extend_from_slice(b"#HY000");
            out.extend_from_slice(text.as_bytes());
        });
        reply
    }

    #[test]
    fn only_what_has_not_run_or_was_rolled_back_is_given_to_a_server_again() {
        const READ_ONLY: &str =
            "The MariaDB server is running with the --read-only option so it cannot execute";
        for (code, text, for_read, for_write) in [
            (
                1047,
                "WSREP has not yet prepared node",
                Some(Again::Rejected),
                Some(Again::Rejected),
            ),
            (1047, "Unknown command", None, None),
            (1290, READ_ONLY, Some(Again::Rejected), Some(Again::Rejected)),
            (
                1290,
                "The MariaDB server is running with the --secure-file-priv option",
                None,
                None,
            ),
            (
                1792,
                "Cannot execute statement in a READ ONLY transaction",
                Some(Again::Writes),
                None,
            ),
            (
                1205,
                "Lock wait timeout exceeded",
                Some(Again::Behind),
                Some(Again::Conflict),
            ),
            (1045, "Access denied", Some(Again::Behind), None),
            (
                1213,
                "Deadlock found",
                Some(Again::Conflict),
                Some(Again::Conflict),
            ),
            (1062, "Duplicate entry", None, None),
            // What was killed on purpose, or has taken too long, is over.
            (1317, "Query execution was interrupted", None, None),
            (
                1969,
                "Query execution was interrupted (max_statement_time exceeded)",
                None,
                None,
            ),
            (
                3024,
                "Query execution was interrupted, maximum statement execution time exceeded",
                None,
                None,
            ),
        ] {
            let reply = reply(code, text);
            assert_eq!(Again::of(&reply, true), for_read, "{code} {text}");
            assert_eq!(Again::of(&reply, false), for_write, "{code} {text}");
            for len in 0..reply.len() {
                let _ = Again::of(&reply[..len], true);
            }
        }
        let mut behind_a_part = Vec::new();
        append_packet(1, &mut behind_a_part, |out| {
            out.extend_from_slice(b"\0\0\0\x02\0\0\0")
        });
        behind_a_part.extend(reply(1047, "WSREP has not yet prepared node"));
        assert_eq!(
            Again::of(&behind_a_part, false),
            None,
            "its client may have that part"
        );
    }

    #[test]
    fn each_reason_has_a_count_of_its_own() {
        let counts = AgainCounts::default();
        counts.add(Again::Conflict);
        counts.add(Again::Conflict);
        counts.add(Again::Unsent);
        let seen: Vec<_> = { counts.get().into_iter() }
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(seen, [("unsent", 1), ("conflict", 2)]);
    }
}
