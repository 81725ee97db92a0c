//! Reading of clients' messages: their length, and their command by their first byte.

use proxima_wire::{
    message::{Bad, Class, Outcome, Parse, Parsed, Piece, Reply, Request},
    mysql::{Capabilities, Header, LARGEST_PACKET, OkPacket, Status},
};

use super::{Mysql, commands};
use crate::protocol::Requests;

/// The first packet of a message has another number than 0 (1156, 08S01).
const OUT_OF_ORDER: &[u8] = b"\x21\0\0\x01\xff\x84\x04#08S01Got packets out of order";
/// More bytes than a message may have (1153, 08S01).
const TOO_LARGE: &[u8] = b"\x3c\0\0\x01\xff\x81\x04#08S01Got a packet bigger than 'max_allowed_packet' bytes";

/// A message of more bytes is passed on as it comes.
const WHOLE: u64 = 64 * 1024;

/// Bytes of a large message that are held to be understood. EXECUTE tells behind a bit for each of at most
/// 65,535 parameters whether their types follow.
const HEAD: u32 = 9 * 1024;

impl Requests for Mysql {
    fn request(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request> {
        *parse = Parse::default();
        let Some((header, payload)) = bytes.split_first_chunk() else {
            return Parsed::More;
        };
        let header = Header::of(*header);
        if header.sequence != 0 {
            return Parsed::Bad(Bad::fatal(OUT_OF_ORDER));
        }
        if u64::from(header.len) > value_limit {
            return Parsed::Bad(Bad::fatal(TOO_LARGE));
        }
        let Some(&first) = payload.first() else {
            return match header.len {
                0 => Parsed::Head(Request::new(commands::REJECTED, Class::Session, Header::LEN)),
                _ => Parsed::More,
            };
        };
        let command = commands::of(first);
        let len = header.len + Header::LEN as u32;
        let is_large = u64::from(len) > WHOLE;
        let head = if is_large { HEAD } else { len };
        if (bytes.len() as u64) < u64::from(head) {
            return Parsed::More;
        }
        let is_open = header.len == LARGEST_PACKET;
        if is_open {
            // The number of each packet, and the bytes of all that may still come.
            parse.seen = 1;
            parse.progress[0] = u32::try_from(value_limit - u64::from(header.len)).unwrap_or(u32::MAX);
        }
        let is_unanswered = matches!(command, commands::CLOSE | commands::LONG_DATA);
        Parsed::Head(Request {
            body: u64::from(len - head),
            is_open,
            is_unanswered,
            is_quiet: is_unanswered,
            // A statement may take as long as it takes: servers have limits of their own.
            extra_timeout: u32::MAX,
            ..Request::new(command, Class::Session, head as usize)
        })
    }

    fn piece(&self, parse: &mut Parse, bytes: &[u8], _: u64) -> Parsed<Piece> {
        let Some((header, _)) = bytes.split_first_chunk() else {
            return Parsed::More;
        };
        let header = Header::of(*header);
        if u32::from(header.sequence) != parse.seen & 0xff {
            return Parsed::Bad(Bad::fatal(OUT_OF_ORDER));
        }
        let Some(left) = parse.progress[0].checked_sub(header.len) else {
            return Parsed::Bad(Bad::fatal(TOO_LARGE));
        };
        let is_last = header.len < LARGEST_PACKET;
        *parse = match is_last {
            true => Parse::default(),
            false => Parse {
                // Beyond 255 the number begins anew; what was noted must not look new.
                seen: 0x100 | (parse.seen + 1) & 0xff,
                progress: [left, 0],
                ..Parse::default()
            },
        };
        Parsed::Head(Piece {
            len: u64::from(header.len) + Header::LEN as u64,
            is_last,
        })
    }

    /// An empty server has done nothing to any row.
    fn miss(&self, _: u16, _: &Request, _: &[u8], out: &mut Vec<u8>) -> Reply {
        OkPacket {
            status: Status::AUTOCOMMIT,
            ..OkPacket::default()
        }
        .append(Capabilities::PROTOCOL_41, 1, out);
        Reply::new(Outcome::Ok, out.len())
    }

    /// The SQL state.
    fn error_word<'a>(&self, reply: &'a [u8]) -> &'a [u8] {
        match reply.get(4..) {
            Some([0xff, _, _, b'#', ..]) => reply.get(8..13).unwrap_or_default(),
            _ => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::ErrPacket;

    use super::{OUT_OF_ORDER, TOO_LARGE};

    #[test]
    fn errors_that_close_a_connection_are_packets() {
        for (packet, code) in [(OUT_OF_ORDER, 1156), (TOO_LARGE, 1153)] {
            assert_eq!(usize::from(packet[0]) + 4, packet.len());
            let error = ErrPacket::read(&packet[4..]).unwrap();
            assert_eq!((error.code, error.state), (code, Some(*b"08S01")));
        }
    }
}
