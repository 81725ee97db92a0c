//! A server's messages: replies, their parts, and pushes.

use memchr::memchr;

use super::{
    LINE, error,
    number::{Line, line},
    state::{MOST_DUE, State},
};
use crate::message::{Bad, Message, Outcome, Parse, Parsed, Reply};

/// Values of a nested reply, or of a push, are passed on when they make this many bytes.
const PORTION: usize = 8 * 1024;
/// A reply of more bytes may be returned before its last string has come.
const WHOLE: usize = 64 * 1024;

/// The message that is awaited from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The reply to one command.
    Reply,
    /// This many replies, which are one together: those to `MULTI`, to each command behind it, and to `EXEC`.
    /// They are counted, and not known by their words: a server that refuses `MULTI` executes the commands
    /// behind it one by one, and answers anything to them.
    Replies(u16),
    /// The reply to `PING` on a connection that may have subscriptions: in RESP2, messages to subscribers are
    /// arrays that begin with a word.
    Subscriber,
    /// No reply: only a push can come, which in RESP2 is an array.
    Nothing,
}

/// Why reading stops.
enum Stop {
    /// More bytes are needed.
    More,
    /// Everything that was read can be passed on.
    Part,
    /// A push ends.
    Push,
    /// The reply ends.
    Last(Outcome),
    /// The reply ends with a large string, which has not come: its head and this many bytes.
    Large(usize, u64),
    /// No server says this.
    Garbage,
}

/// Parses the next message of a server. `parse` is new, or holds what an earlier call noted about these
/// bytes, or about the part before them. The last part of a reply leaves it new.
///
/// Lists and pushes are relayed in parts of some kilobytes, however deep and long they are; a large string in
/// the middle of a list or in a push leaves as it comes.
pub fn reply(parse: &mut Parse, expect: Expect, bytes: &[u8]) -> Parsed<Message> {
    let mut state = State::of(parse);
    let stop = read(&mut state, expect, bytes);
    let seen = state.seen as usize;
    let part = |outcome| Reply::new(outcome, seen);
    let message = match stop {
        Stop::Garbage => {
            *parse = Parse::default();
            return Parsed::Bad(Bad::fatal(b""));
        }
        Stop::More => {
            state.keep(parse);
            return Parsed::More;
        }
        Stop::Part => {
            state.seen = 0;
            state.keep(parse);
            return Parsed::Head(match state.is_push {
                true => Message::PushPart(part(Outcome::Ok)),
                false => Message::Part(part(Outcome::Found)),
            });
        }
        Stop::Push => {
            state.seen = 0;
            state.keep(parse);
            return Parsed::Head(Message::Push(part(Outcome::Ok)));
        }
        Stop::Last(outcome) => Message::Last(part(outcome)),
        Stop::Large(head, body) => Message::Last(Reply {
            body,
            ..Reply::new(Outcome::Found, head)
        }),
    };
    *parse = Parse::default();
    Parsed::Head(message)
}

/// Parses a short reply of one value that is all there, in one look. `None`: [`reply()`] has to read it.
#[inline]
pub fn whole(bytes: &[u8]) -> Option<Reply> {
    let (outcome, end) = match bytes.first()? {
        b'$' if bytes.starts_with(b"$-1\r\n") => (Outcome::NotFound, 5),
        b'$' => match line(bytes, 1) {
            Line::Number(len @ 0.., start) => {
                let end = start + len as usize;
                let ends = bytes.get(end..)?.starts_with(b"\r\n");
                (Outcome::Found, ends.then_some(end + 2)?)
            }
            _ => return None,
        },
        b'+' => (Outcome::Ok, short_line(bytes)?),
        b':' => (Outcome::Found, short_line(bytes)?),
        b'_' => (Outcome::NotFound, bytes.starts_with(b"_\r\n").then_some(3)?),
        _ => return None,
    };
    Some(Reply::new(outcome, end))
}

/// The end of a line of a few characters.
#[inline]
fn short_line(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().take(32).position(|&byte| byte == b'\r')?;
    (bytes.get(end + 1) == Some(&b'\n')).then_some(end + 2)
}

fn read(state: &mut State, expect: Expect, bytes: &[u8]) -> Stop {
    loop {
        let stop = match value(state, expect, bytes) {
            Ok(()) if state.seen as usize > PORTION => Some(Stop::Part),
            Ok(()) => None,
            // A string that comes bit by bit, or a list of which much has come.
            Err(Stop::More)
                if state.seen as usize > PORTION || state.content as usize > PORTION && state.seen > 0 =>
            {
                Some(Stop::Part)
            }
            Err(stop) => Some(stop),
        };
        if let Some(stop) = stop {
            return stop;
        }
    }
}

/// Reads the next value, or as much of it as has come.
fn value(state: &mut State, expect: Expect, bytes: &[u8]) -> Result<(), Stop> {
    if state.content > 0 {
        return content(state, bytes);
    }
    let at = state.seen as usize;
    let kind = *bytes.get(at).ok_or(Stop::More)?;
    if state.is_chunks {
        return chunk(state, kind, bytes);
    }
    let is_first = state.due == 0;
    match kind {
        b'>' => return push(state, bytes),
        b'*' if is_first && at == 0 && is_message(expect, bytes)? => return push(state, bytes),
        _ if is_first && expect == Expect::Nothing => return Err(Stop::Garbage),
        _ => {}
    }
    let mut next = *state;
    if is_first {
        next.due = match expect {
            Expect::Replies(count) => u32::from(count),
            _ => 1,
        };
    }
    let read = match kind {
        b'$' | b'=' | b'!' => string(&mut next, kind, bytes),
        b'*' | b'~' | b'%' | b'|' => list(&mut next, kind, bytes),
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => scalar(&mut next, kind, bytes),
        b'.' => end_stream(&mut next, bytes),
        _ => Err(Stop::Garbage),
    };
    if !matches!(read, Err(Stop::More)) {
        *state = next;
    }
    read
}

/// Is this array a message to a subscriber?
fn is_message(expect: Expect, bytes: &[u8]) -> Result<bool, Stop> {
    const WORDS: [&[u8]; 9] = [
        b"message",
        b"pmessage",
        b"smessage",
        b"subscribe",
        b"psubscribe",
        b"ssubscribe",
        b"unsubscribe",
        b"punsubscribe",
        b"sunsubscribe",
    ];
    match expect {
        Expect::Nothing => return Ok(true),
        Expect::Subscriber => {}
        Expect::Reply | Expect::Replies(_) => return Ok(false),
    }
    let Line::Number(_, first) = line(bytes, 1) else {
        return Err(Stop::More);
    };
    match (bytes.get(first), line(bytes, first + 1)) {
        (Some(b'$'), Line::Number(len @ 0..=16, start)) => {
            let word = bytes.get(start..start + len as usize).ok_or(Stop::More)?;
            Ok(WORDS.contains(&word))
        }
        (None, _) | (Some(b'$'), Line::More) => Err(Stop::More),
        _ => Ok(false),
    }
}

/// The position behind the CR LF that must stand here.
fn crlf(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    match bytes.get(at..).unwrap_or_default() {
        [b'\r', b'\n', ..] => Ok(at + 2),
        [] | [b'\r'] => Err(Stop::More),
        _ => Err(Stop::Garbage),
    }
}

/// Reads the head of a push.
fn push(state: &mut State, bytes: &[u8]) -> Result<(), Stop> {
    if state.is_push || state.is_stream {
        return Err(Stop::Garbage);
    }
    if state.seen > 0 {
        // What has come of the reply leaves before the push.
        return Err(Stop::Part);
    }
    let count = count(bytes, 1)?;
    state.seen = count.1 as u32;
    state.aside = std::mem::replace(&mut state.due, count.0);
    state.is_push = true;
    if count.0 == 0 {
        return Err(end_push(state));
    }
    Ok(())
}

fn end_push(state: &mut State) -> Stop {
    state.is_push = false;
    state.due = std::mem::take(&mut state.aside);
    Stop::Push
}

/// Reads the number of elements at `at`. Returns it with the position behind it.
fn count(bytes: &[u8], at: usize) -> Result<(u32, usize), Stop> {
    match line(bytes, at) {
        Line::Number(count, end) if (0..=i64::from(MOST_DUE)).contains(&count) => Ok((count as u32, end)),
        Line::More => Err(Stop::More),
        Line::Number(..) | Line::Bad => Err(Stop::Garbage),
    }
}

/// Reads the head of a list; its elements are due from now on.
fn list(state: &mut State, kind: u8, bytes: &[u8]) -> Result<(), Stop> {
    let at = state.seen as usize + 1;
    if kind == b'*' && bytes.get(at) == Some(&b'-') {
        let Line::Number(-1, end) = line(bytes, at) else {
            return Err(match line(bytes, at) {
                Line::More => Stop::More,
                _ => Stop::Garbage,
            });
        };
        state.seen = end as u32;
        return done(state, Outcome::NotFound);
    }
    if kind != b'|' && bytes.get(at) == Some(&b'?') {
        if state.is_stream || state.is_push {
            return Err(Stop::Garbage);
        }
        state.seen = crlf(bytes, at + 1)? as u32;
        state.aside = std::mem::replace(&mut state.due, 1);
        (state.is_stream, state.has_begun) = (true, true);
        return Ok(());
    }
    let (count, end) = count(bytes, at)?;
    let elements = match kind {
        b'%' | b'|' => count.checked_mul(2),
        _ => Some(count),
    };
    let due = elements.and_then(|elements| state.due.checked_add(elements));
    state.due = due.filter(|&due| due <= MOST_DUE).ok_or(Stop::Garbage)?;
    state.seen = end as u32;
    if kind == b'|' {
        // The value that an attribute describes is still due.
        return Ok(());
    }
    state.has_begun |= !state.is_push;
    done(state, Outcome::Found)
}

/// Reads the end of a streamed list.
fn end_stream(state: &mut State, bytes: &[u8]) -> Result<(), Stop> {
    if !state.is_stream || state.due != 1 {
        return Err(Stop::Garbage);
    }
    state.seen = crlf(bytes, state.seen as usize + 1)? as u32;
    state.is_stream = false;
    state.due = std::mem::take(&mut state.aside);
    done(state, Outcome::Found)
}

/// Reads a string with a length.
fn string(state: &mut State, kind: u8, bytes: &[u8]) -> Result<(), Stop> {
    let at = state.seen as usize + 1;
    if kind == b'$' && bytes.get(at) == Some(&b'?') {
        state.seen = crlf(bytes, at + 1)? as u32;
        state.is_chunks = true;
        return Ok(());
    }
    let (len, start) = match line(bytes, at) {
        Line::Number(-1, end) if kind == b'$' => {
            state.seen = end as u32;
            return done(state, Outcome::NotFound);
        }
        Line::Number(len, start) if (0..=i64::from(u32::MAX) - 3).contains(&len) => (len as usize, start),
        Line::More => return Err(Stop::More),
        Line::Number(..) | Line::Bad => return Err(Stop::Garbage),
    };
    let end = start + len;
    let is_last = state.due == 1 && !state.is_push && !state.is_stream;
    if is_last && end + 2 > WHOLE {
        return Err(Stop::Large(start, len as u64 + 2));
    }
    if !is_last && len > PORTION {
        state.seen = start as u32;
        state.content = len as u32 + 1;
        return Ok(());
    }
    state.seen = crlf(bytes, end)? as u32;
    let outcome = match kind {
        b'!' => error::outcome(bytes.get(start..).unwrap_or_default()),
        _ => Outcome::Found,
    };
    done(state, outcome)
}

/// Takes what has come of a large string, and its end.
fn content(state: &mut State, bytes: &[u8]) -> Result<(), Stop> {
    let at = state.seen as usize;
    let here = (state.content as usize - 1)
        .min(bytes.len().saturating_sub(at))
        .min((WHOLE / 2).saturating_sub(at));
    state.seen += here as u32;
    state.content -= here as u32;
    if state.content > 1 {
        return Err(Stop::More);
    }
    state.seen = crlf(bytes, at + here)? as u32;
    state.content = 0;
    if state.is_chunks {
        return Ok(());
    }
    done(state, Outcome::Found)
}

/// Reads the head of a chunk of a streamed string.
fn chunk(state: &mut State, kind: u8, bytes: &[u8]) -> Result<(), Stop> {
    if kind != b';' {
        return Err(Stop::Garbage);
    }
    let (len, start) = count(bytes, state.seen as usize + 1)?;
    state.seen = start as u32;
    if len > 0 {
        state.content = len + 1;
        return Ok(());
    }
    state.is_chunks = false;
    done(state, Outcome::Found)
}

/// Reads a value of one line.
fn scalar(state: &mut State, kind: u8, bytes: &[u8]) -> Result<(), Stop> {
    let rest = bytes.get(state.seen as usize..).unwrap_or_default();
    let within = &rest[..rest.len().min(LINE)];
    let Some(end) = memchr(b'\r', within) else {
        return Err(if rest.len() >= LINE {
            Stop::Garbage
        } else {
            Stop::More
        });
    };
    crlf(rest, end)?;
    let text = &rest[1..end];
    state.seen += end as u32 + 2;
    done(
        state,
        match kind {
            b'-' => error::outcome(text),
            b'_' => Outcome::NotFound,
            b'+' => Outcome::Ok,
            _ => Outcome::Found,
        },
    )
}

/// One of the values that were due is there.
fn done(state: &mut State, outcome: Outcome) -> Result<(), Stop> {
    if state.is_stream && state.due == 1 {
        return Ok(());
    }
    let outcome = if state.is_top() { outcome } else { Outcome::Found };
    state.due = state.due.saturating_sub(1);
    match (state.due, state.is_push) {
        (0, true) => Err(end_push(state)),
        (0, false) => Err(Stop::Last(outcome)),
        _ => Ok(()),
    }
}
