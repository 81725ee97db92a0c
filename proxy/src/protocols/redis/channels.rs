//! Subscriptions, in the servers' words.

use proxima_wire::{
    message::Span,
    resp::{Args, Command, append_number, integer},
};

use super::{Redis, append_bulk, null, state};
use crate::protocol::{Channels, Confirmation, Session, Subject, SubscriptionChange};

/// The words of confirmations, which are the names of the commands too.
const CHANGES: [(&str, SubscriptionChange); 6] = {
    const fn change(subject: Subject, adds: bool) -> SubscriptionChange {
        SubscriptionChange { subject, adds }
    }
    [
        ("subscribe", change(Subject::Channel, true)),
        ("psubscribe", change(Subject::Pattern, true)),
        ("ssubscribe", change(Subject::Shard, true)),
        ("unsubscribe", change(Subject::Channel, false)),
        ("punsubscribe", change(Subject::Pattern, false)),
        ("sunsubscribe", change(Subject::Shard, false)),
    ]
};

/// The change with this name.
pub(super) fn named(name: &[u8]) -> Option<SubscriptionChange> {
    let found = CHANGES.iter().find(|(word, _)| word.as_bytes() == name);
    found.map(|&(_, change)| change)
}

/// Reads the line that begins at `at`, behind the character of its type. Returns the type, the line's number
/// (0 where there is none) and the position behind the line.
fn line(message: &[u8], at: usize) -> Option<(u8, i64, usize)> {
    let rest = message.get(at..)?;
    let end = rest.iter().take(32).position(|&byte| byte == b'\r')?;
    let (&kind, number) = rest.get(..end)?.split_first()?;
    let number = match number {
        b"" => 0,
        number => integer(number)?,
    };
    Some((kind, number, at + end + 2))
}

/// Reads the string that begins at `at`; a null is empty. Returns it with the position behind it.
fn string(message: &[u8], at: usize) -> Option<(Span, usize)> {
    let (kind, len, start) = line(message, at)?;
    match (kind, usize::try_from(len)) {
        (b'$', Ok(len)) => {
            let end = start.checked_add(len)?;
            message.get(start..end)?;
            Some((Span::new(start, end), end + 2))
        }
        (b'$' | b'_', _) => Some((Span::default(), start)),
        _ => None,
    }
}

impl Channels for Redis {
    fn change(&self, command: u16) -> Option<SubscriptionChange> {
        named(Command::of(command)?.name.as_bytes())
    }

    fn names(&self, message: &[u8], take: &mut dyn FnMut(Span)) {
        Args::of(message).skip(1).for_each(take);
    }

    fn confirmation(&self, message: &[u8]) -> Option<Confirmation> {
        let (_, 3, at) = line(message, 0)? else {
            return None;
        };
        let (word, at) = string(message, at)?;
        let made = named(word.of(message))?;
        let (name, at) = string(message, at)?;
        let (b':', count, _) = line(message, at)? else {
            return None;
        };
        let count = u32::try_from(count).ok()?;
        Some(Confirmation { made, name, count })
    }

    fn confirms(&self, begin: &[u8]) -> bool {
        let word = line(begin, 0).and_then(|(_, _, at)| string(begin, at));
        word.is_some_and(|(word, _)| named(word.of(begin)).is_some())
    }

    fn confirm(
        &self,
        form: u16,
        made: SubscriptionChange,
        name: Option<&[u8]>,
        count: u32,
        out: &mut Vec<u8>,
    ) {
        let word = CHANGES.iter().find(|(_, change)| *change == made);
        append_number(if form == 0 { b'*' } else { b'>' }, 3, out);
        append_bulk(word.map_or("", |(word, _)| word).as_bytes(), out);
        match name {
            Some(name) => append_bulk(name, out),
            None => out.extend_from_slice(null(form)),
        }
        append_number(b':', i64::from(count), out);
    }

    fn subscribed(&self, session: &mut Session, has_subscriptions: bool) {
        session.has_subscriptions = has_subscriptions;
        state::note_change(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_is_read_as_it_is_written_in_both_versions() {
        for form in [0, 1] {
            for (_, made) in CHANGES {
                for name in [None, Some(&b"a"[..]), Some(b"\r\n:7\r\n")] {
                    let mut message = Vec::new();
                    Redis::PLAIN.confirm(form, made, name, 7, &mut message);
                    let read = Redis::PLAIN.confirmation(&message).unwrap();
                    assert_eq!((read.made, read.count), (made, 7));
                    assert_eq!(read.name.of(&message), name.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn a_message_or_half_a_confirmation_is_no_confirmation() {
        let whole = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n";
        for end in 0..whole.len() - 1 {
            assert_eq!(Redis::PLAIN.confirmation(&whole[..end]), None, "{end}");
        }
        for message in [
            &b"*3\r\n$7\r\nmessage\r\n$9\r\nsubscribe\r\n$1\r\na\r\n"[..],
            b"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n",
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:-1\r\n",
            b"*3\r\n$9\r\nsubscribe\r\n$99999999999999999999\r\na\r\n:1\r\n",
            b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n",
        ] {
            assert_eq!(Redis::PLAIN.confirmation(message), None, "{message:?}");
        }
    }
}
