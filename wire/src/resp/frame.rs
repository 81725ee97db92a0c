//! The end of a request.

use memchr::memchr;

use super::{
    LARGEST_BULK, LINE, Limits, error, inline,
    number::{Line, line},
};
use crate::message::{Bad, Parse, Parsed, Piece};

/// The most arguments of a request that servers take.
const MOST_ARGS: i64 = i32::MAX as i64;

/// An argument of more bytes than this can be passed on as it comes.
const LARGE: u64 = 64 * 1024;

/// The form of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An array of bulk strings.
    Array,
    /// A line of words.
    Inline,
}

/// A request whose bytes are valid as far as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its form.
    pub kind: Kind,
    /// The number of its arguments, the command's name included; of an inline command 0: not counted.
    pub args: u32,
    /// Bytes of the request; where `large` is not 0, bytes before the content of that argument.
    pub head: u32,
    /// Bytes of a large argument whose content has not come; 0: the request is complete.
    pub large: u64,
}

/// `progress[1]` of a [`Parse`]: the next argument is large, and its content has been counted.
///
/// The other fields: `seen` is the position of the next argument, or of the next byte of a line, `left` the
/// number of arguments to come, and `progress[0]` the number of all of them.
const OPEN: u32 = 1;

/// Reads the beginning of a request. `parse` is new, or what an earlier call noted about these bytes; a
/// complete request leaves it new. If a large argument has begun and not ended, its frame is returned and
/// `parse` stays, so that the caller may ask again when more has come, or go on with [`rest`].
#[inline]
pub fn frame(parse: &mut Parse, bytes: &[u8], limits: &Limits) -> Parsed<Frame> {
    if parse.left == 0 {
        match bytes.first() {
            Some(b'*') => match line(bytes, 1) {
                Line::Number(count @ 1..=MOST_ARGS, at) => {
                    parse.seen = at as u32;
                    parse.left = count as u32;
                    parse.progress = [count as u32, 0];
                }
                // Servers pass over such a request without a word.
                Line::Number(..=0, at) => return refuse(parse, Bad::refused(at, b"")),
                Line::More => return Parsed::More,
                Line::Number(..) | Line::Bad => return refuse(parse, Bad::fatal(error::MULTIBULK_LENGTH)),
            },
            Some(_) => return inline(parse, bytes),
            None => return Parsed::More,
        }
    }
    match args(parse, bytes, limits) {
        Ok(parsed) => parsed,
        Err(reply) => refuse(parse, Bad::fatal(reply)),
    }
}

#[cold]
fn refuse(parse: &mut Parse, bad: Bad) -> Parsed<Frame> {
    *parse = Parse::default();
    Parsed::Bad(bad)
}

/// Reads the arguments that are still to come.
#[inline]
fn args(parse: &mut Parse, bytes: &[u8], limits: &Limits) -> Result<Parsed<Frame>, &'static [u8]> {
    let mut at = parse.seen as usize;
    let args = parse.progress[0];
    while parse.left > 0 {
        match bytes.get(at) {
            Some(b'$') => {}
            Some(&other) => return Err(error::no_bulk(other)),
            None => return Ok(Parsed::More),
        }
        let (len, start) = match line(bytes, at + 1) {
            Line::Number(len, start) if (0..=limits.bulk()).contains(&len) => (len as usize, start),
            Line::More => return Ok(Parsed::More),
            Line::Number(..) | Line::Bad => return Err(error::BULK_LENGTH),
        };
        match bytes.get(start + len..) {
            Some([b'\r', b'\n', ..]) => {}
            None | Some([] | [b'\r']) if len as u64 > LARGE => {
                parse.progress[1] = OPEN;
                return Ok(Parsed::Head(Frame {
                    kind: Kind::Array,
                    args,
                    head: start as u32,
                    large: len as u64,
                }));
            }
            None | Some([] | [b'\r']) => return Ok(Parsed::More),
            Some(_) => return Err(error::NO_CRLF),
        }
        at = start + len + 2;
        parse.seen = at as u32;
        parse.left -= 1;
    }
    *parse = Parse::default();
    Ok(Parsed::Head(Frame {
        kind: Kind::Array,
        args,
        head: at as u32,
        large: 0,
    }))
}

/// Finds the end of an inline command. Blank lines are passed over without a reply.
fn inline(parse: &mut Parse, bytes: &[u8]) -> Parsed<Frame> {
    let seen = parse.seen as usize;
    let within = &bytes[..bytes.len().min(LINE)];
    let found = memchr(b'\n', within.get(seen..).unwrap_or_default());
    // Servers do not look for a line end behind a zero byte.
    let fresh = &within[seen.min(within.len())..found.map_or(within.len(), |end| seen + end)];
    if memchr(0, fresh).is_some() {
        return refuse(parse, Bad::fatal(error::INLINE_SIZE));
    }
    let Some(end) = found.map(|end| seen + end) else {
        if bytes.len() >= LINE {
            return refuse(parse, Bad::fatal(error::INLINE_SIZE));
        }
        parse.seen = bytes.len() as u32;
        return Parsed::More;
    };
    *parse = Parse::default();
    match inline::count(&bytes[..end]) {
        None => Parsed::Bad(Bad::fatal(error::UNBALANCED)),
        Some(0) => Parsed::Bad(Bad::refused(end + 1, b"")),
        Some(_) => Parsed::Head(Frame {
            kind: Kind::Inline,
            args: 0,
            head: end as u32 + 1,
            large: 0,
        }),
    }
}

/// Goes on behind the content of a large argument: reads its end and the arguments that follow. `parse` is
/// what [`frame()`] or this function left, and `bytes` begin behind the bytes that one of them has counted.
/// The last piece leaves `parse` new.
pub fn rest(parse: &mut Parse, bytes: &[u8], limits: &Limits) -> Parsed<Piece> {
    let before = *parse;
    parse.seen = 0;
    if parse.progress[1] == OPEN {
        match bytes {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => {
                *parse = before;
                return Parsed::More;
            }
            _ => {
                *parse = Parse::default();
                return Parsed::Bad(Bad::fatal(error::NO_CRLF));
            }
        }
        parse.seen = 2;
        parse.left -= 1;
        parse.progress[1] = 0;
    }
    match args(parse, bytes, limits) {
        Ok(Parsed::Head(frame)) => Parsed::Head(Piece {
            len: u64::from(frame.head) + frame.large,
            is_last: frame.large == 0,
        }),
        // What has come is valid and need not wait for the rest.
        Ok(_) if parse.seen > 0 => Parsed::Head(Piece {
            len: u64::from(parse.seen),
            is_last: false,
        }),
        Ok(_) => {
            *parse = before;
            Parsed::More
        }
        Err(reply) => {
            *parse = Parse::default();
            Parsed::Bad(Bad::fatal(reply))
        }
    }
}

impl Limits {
    /// The largest bulk string.
    fn bulk(&self) -> i64 {
        self.value.min(LARGEST_BULK) as i64
    }
}
