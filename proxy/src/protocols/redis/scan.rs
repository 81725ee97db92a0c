//! `SCAN` over several members, one after the other.
//!
//! A cursor has the member's number plus 1 above [`INNER_BITS`] bits, and the server's own cursor below them.
//! Servers' cursors are less than the number of their buckets. 0 begins at the first member, and ends behind
//! the last. A member that has left ends its part: the next number is visited instead.

use proxima_wire::resp::{Args, append_number, integer};

use super::{append_bulk, join};
use crate::protocol::{Assembly, Parts};

/// Bits of a server's own cursor. 15 bits are above them, so that a cursor is less than 2^63.
const INNER_BITS: u32 = 48;
const INNER: u64 = (1 << INNER_BITS) - 1;

/// The servers' text for an invalid cursor.
const INVALID: &[u8] = b"-ERR invalid cursor\r\n";
const NOTHING: &[u8] = b"*2\r\n$1\r\n0\r\n*0\r\n";

/// The member's number plus 1, and its own cursor; `None` if a client has made the cursor up.
fn parse(text: &[u8]) -> Option<(u16, u64)> {
    let cursor = u64::try_from(integer(text)?).ok()?;
    let (number, inner) = ((cursor >> INNER_BITS) as u16, cursor & INNER);
    (number > 0 || inner == 0).then_some((number, inner))
}

/// Names the member to ask. `numbers` are those of the members, in ascending order. Appends the request for
/// it, or the reply if no member is asked.
pub(super) fn visit(message: &[u8], numbers: &[u16], out: &mut Vec<u8>) -> Option<usize> {
    let cursor = Args::of(message).nth(1).map_or(&[][..], |arg| arg.of(message));
    let Some((number, inner)) = parse(cursor) else {
        out.extend_from_slice(INVALID);
        return None;
    };
    let at = numbers.partition_point(|&other| other + 1 < number);
    let Some(&found) = numbers.get(at) else {
        out.extend_from_slice(NOTHING);
        return None;
    };
    let inner = if found + 1 == number { inner } else { 0 };
    append_number(b'*', i64::from(Args::of(message).left()), out);
    for (position, arg) in Args::of(message).enumerate() {
        match position {
            1 => append_bulk(inner.to_string().as_bytes(), out),
            _ => append_bulk(arg.of(message), out),
        }
    }
    Some(at)
}

/// Puts the number of the member that was asked, or of the next one, into the cursor of its reply.
pub(super) fn answer(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    let (reply, is_error) = (parts.reply)(0);
    if is_error {
        return out.whole(parts, 0);
    }
    let &[number, next] = parts.order else {
        return join::malformed(out);
    };
    let Some((inner, behind)) = cursor_of(reply) else {
        return join::malformed(out);
    };
    let (number, inner) = if inner == 0 { (next, 0) } else { (number, inner) };
    let cursor = u64::from(number) << INNER_BITS | inner;
    out.own().extend_from_slice(b"*2\r\n");
    append_bulk(cursor.to_string().as_bytes(), out.own());
    out.excerpt(parts, 0, behind..reply.len());
}

/// The cursor in a server's reply, and the position behind it.
fn cursor_of(reply: &[u8]) -> Option<(u64, usize)> {
    const HEAD: &[u8] = b"*2\r\n";
    let mut lines = reply.strip_prefix(HEAD)?.split_inclusive(|&byte| byte == b'\n');
    let (length, cursor) = (lines.next()?, lines.next()?);
    let inner = u64::try_from(integer(cursor.strip_suffix(b"\r\n")?)?).ok()?;
    (length.first() == Some(&b'$') && inner <= INNER)
        .then_some((inner, HEAD.len() + length.len() + cursor.len()))
}

#[cfg(test)]
mod tests {
    use super::{INVALID, NOTHING, answer, visit};
    use crate::protocol::{Assembly, Parts};

    fn request(cursor: &str) -> Vec<u8> {
        format!(
            "*4\r\n$4\r\nSCAN\r\n${}\r\n{cursor}\r\n$5\r\nCOUNT\r\n$1\r\n7\r\n",
            cursor.len()
        )
        .into()
    }

    fn answered(order: &[u32], reply: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut parts = Parts {
            count: 1,
            order,
            reply: &|_| (reply, false),
            cursors: &mut [0],
        };
        answer(&mut parts, &mut Assembly::new(&mut out, None));
        out
    }

    #[test]
    fn a_cursor_names_the_member_and_goes_on_behind_one_that_left() {
        let numbers = [3, 7, 32_766];
        for (cursor, expected) in [
            (0, Some((0, 0))),
            (4 << 48 | 5, Some((0, 5))),
            (8 << 48, Some((1, 0))),
            // Number 5 has left.
            (6 << 48 | 9, Some((1, 0))),
            (32_767 << 48 | 1, Some((2, 1))),
        ] {
            let mut out = Vec::new();
            let at = visit(&request(&u64::to_string(&cursor)), &numbers, &mut out);
            assert_eq!(at, expected.map(|(at, _)| at), "{cursor}");
            assert_eq!(
                Some(out),
                expected.map(|(_, inner)| request(&i32::to_string(&inner)))
            );
        }
        let mut out = Vec::new();
        assert_eq!(visit(&request(&(9_u64 << 48).to_string()), &[3], &mut out), None);
        assert_eq!(out, NOTHING);
    }

    #[test]
    fn cursor_that_a_client_made_up_is_rejected() {
        for cursor in [
            "",
            "x",
            "-1",
            "1",
            "281474976710655",
            "9223372036854775808",
            "18446744073709551615",
        ] {
            let mut out = Vec::new();
            assert_eq!(visit(&request(cursor), &[3], &mut out), None, "{cursor}");
            assert_eq!(out, INVALID, "{cursor}");
        }
    }

    #[test]
    fn the_end_of_one_member_leads_to_the_next_and_the_last_to_0() {
        let list = "*1\r\n$1\r\na\r\n";
        for (order, inner, outer) in [
            ([4, 8], 5, 4 << 48 | 5_u64),
            ([4, 8], 0, 8 << 48),
            ([8, 0], 0, 0),
            ([32_767, 0], (1 << 48) - 1, (1 << 63) - 1),
        ] {
            let reply = |cursor: u64| format!("*2\r\n${}\r\n{cursor}\r\n{list}", cursor.to_string().len());
            assert_eq!(answered(&order, reply(inner).as_bytes()), reply(outer).as_bytes());
        }
        for reply in [
            "*2\r\n$1\r\nx\r\n*0\r\n",
            ":1\r\n",
            "*2\r\n$15\r\n281474976710656\r\n*0\r\n",
        ] {
            assert!(
                answered(&[4, 8], reply.as_bytes()).starts_with(b"-ERR "),
                "{reply}"
            );
        }
    }
}
