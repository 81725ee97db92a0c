//! The replies of an empty cache.

use super::line::{self, Words};
use super::{Command, error};
use crate::message::{Outcome, Request};

/// Appends to `out` the reply of an empty cache to `request`, whose head begins `bytes`: a miss,
/// `NOT_STORED`, `NOT_FOUND`, or the meta codes with the flags that the request wants back. Commands about a
/// server or a connection get `OK` where that is the usual reply, and else `ERROR`.
pub fn default_reply(request: &Request, bytes: &[u8], out: &mut Vec<u8>) -> Outcome {
    use Command::*;
    let Some(command) = Command::from_number(request.command) else {
        out.extend_from_slice(error::ERROR);
        return Outcome::ClientError;
    };
    let (line, outcome): (&[u8], Outcome) = match command {
        Get | Gets | Gat | Gats | Metadata | Config => (b"END\r\n", Outcome::NotFound),
        // No server gives the token 0: a fill of this miss stores nothing.
        LeaseGet => {
            out.extend_from_slice(b"LVALUE ");
            out.extend_from_slice(request.key.of(bytes));
            (b" 0 0 0\r\n\r\nEND\r\n", Outcome::NotFound)
        }
        Set | Add | Replace | Append | Prepend | Cas | LeaseSet => (b"NOT_STORED\r\n", Outcome::NotStored),
        Delete | Incr | Decr | Touch => (b"NOT_FOUND\r\n", Outcome::NotFound),
        MetaDebug => (b"EN\r\n", Outcome::NotFound),
        MetaNoop => (b"MN\r\n", Outcome::Ok),
        FlushAll | Verbosity => (b"OK\r\n", Outcome::Ok),
        Version | Stats | Quit | Shutdown | LruCrawler => (error::ERROR, Outcome::ClientError),
        MetaGet => return meta(b"EN", Outcome::NotFound, request, bytes, out),
        MetaSet => return meta(b"NS", Outcome::NotStored, request, bytes, out),
        MetaDelete | MetaArithmetic => return meta(b"NF", Outcome::NotFound, request, bytes, out),
    };
    out.extend_from_slice(line);
    outcome
}

/// Appends a meta code with the key and the opaque, in the order of the request.
fn meta(code: &[u8], outcome: Outcome, request: &Request, bytes: &[u8], out: &mut Vec<u8>) -> Outcome {
    out.extend_from_slice(code);
    let line = line::text(&bytes[..request.head as usize]);
    for word in Words::from(line, request.key.end()) {
        match word.of(line) {
            [b'k', ..] => {
                out.extend_from_slice(b" k");
                out.extend_from_slice(request.key.of(bytes));
                out.extend_from_slice(if request.base64_key { b" b" } else { b"" });
            }
            opaque @ [b'O', ..] => {
                out.push(b' ');
                out.extend_from_slice(opaque);
            }
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    outcome
}
