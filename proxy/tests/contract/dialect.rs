//! The protocol: lines.
//!
//! ```text
//!  server: HELLO salt                 client: GET key      server: = value | ? error
//!  client: LOGIN user answer                  PUT key value        +
//!  server: WELCOME | DENIED                   MANY key count       - part (count times), then . count
//!  server, at any time: ! news                BYE                 (closes)
//! ```

use proxima::dialect::{Conversation, Dialect, Login, Message, Side, Transform};
use proxima_wire::message::{Bad, Class, Outcome, Parsed, Reply, Request, Span};

use crate::scramble::Scramble;

/// As the client and as the server of this protocol.
pub(crate) struct Lines {
    /// At servers.
    pub(crate) password: &'static str,
}

const COMMANDS: [&str; 4] = ["GET", "PUT", "MANY", "BYE"];
const CLASSES: [Class; 4] = [Class::Read, Class::Write, Class::Read, Class::Session];
type Kind = fn(Reply) -> Message;
/// What a server's lines begin with.
const REPLIES: [(u8, Kind, Outcome); 6] = [
    (b'!', Message::Push, Outcome::Ok),
    (b'-', Message::Part, Outcome::Ok),
    (b'.', Message::Last, Outcome::Ok),
    (b'=', Message::Last, Outcome::Found),
    (b'+', Message::Last, Outcome::Stored),
    (b'?', Message::Last, Outcome::RemoteError),
];
const UNKNOWN: &[u8] = b"? no such command\n";
/// No line is longer.
const LONGEST: usize = 16 * 1024;

/// What proves that one knows the password without saying it.
pub(crate) fn answer(salt: &str, password: &str) -> String {
    format!(
        "{:08x}",
        xxhash_rust::xxh3::xxh3_64(format!("{salt}{password}").as_bytes())
    )
}

/// The first line, with its end.
fn line(bytes: &[u8]) -> Parsed<&str> {
    match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            std::str::from_utf8(&bytes[..=end]).map_or(Parsed::Bad(Bad::fatal(UNKNOWN)), Parsed::Head)
        }
        None if bytes.len() > LONGEST => Parsed::Bad(Bad::fatal(UNKNOWN)),
        None => Parsed::More,
    }
}

impl Dialect for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn commands(&self) -> &'static [&'static str] {
        &COMMANDS
    }

    fn request(&self, bytes: &[u8], _: u64) -> Parsed<Request> {
        line(bytes).and_then(|line| {
            let mut words = line.trim_end().split(' ');
            let [name, key] = [0; 2].map(|_| words.next().unwrap_or_default());
            let Some(command) = self.command(name) else {
                return Parsed::Bad(Bad::refused(line.len(), UNKNOWN));
            };
            Parsed::Head(Request {
                key: Span::new(name.len() + 1, name.len() + 1 + key.len()),
                ..Request::new(command, CLASSES[usize::from(command)], line.len())
            })
        })
    }

    fn reply(&self, _: u16, bytes: &[u8]) -> Parsed<Message> {
        line(bytes).and_then(
            |line| match REPLIES.iter().find(|reply| line.as_bytes()[0] == reply.0) {
                Some((_, message, outcome)) => Parsed::Head(message(Reply::new(*outcome, line.len()))),
                None => Parsed::Bad(Bad::fatal(UNKNOWN)),
            },
        )
    }

    fn miss(&self, _: &Request, _: &[u8], out: &mut Vec<u8>) -> Reply {
        out.extend_from_slice(b"? nothing\n");
        Reply::new(Outcome::NotFound, out.len())
    }

    fn error(&self, _: Outcome, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("? proxy: {text}\n").as_bytes());
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (0, b"GET probe\n")
    }

    fn transform(&self, side: Side) -> Option<Box<dyn Transform>> {
        Some(Box::new(match side {
            Side::Client => Scramble::accepting(),
            Side::Server => Scramble::connecting(77),
        }))
    }

    fn admit(&self, conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        if conversation.notes.is_empty() {
            conversation.notes = b"pepper".to_vec();
            out.extend_from_slice(b"HELLO pepper\n");
        }
        let salt = String::from_utf8_lossy(&conversation.notes);
        match line(bytes) {
            Parsed::Head(line) if line == format!("LOGIN app {}\n", answer(&salt, "open sesame")) => {
                out.extend_from_slice(b"WELCOME\n");
                Login::Ready { used: line.len() }
            }
            Parsed::More => Login::More { used: 0 },
            _ => {
                out.extend_from_slice(b"DENIED\n");
                Login::Refused("wrong password".into())
            }
        }
    }

    fn login(&self, conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        match (conversation.step, line(bytes)) {
            (_, Parsed::More) => Login::More { used: 0 },
            (0, Parsed::Head(line)) if line.starts_with("HELLO ") => {
                conversation.step = 1;
                let answer = answer(line[6..].trim_end(), self.password);
                out.extend_from_slice(format!("LOGIN proxy {answer}\n").as_bytes());
                Login::More { used: line.len() }
            }
            (1, Parsed::Head(line @ "WELCOME\n")) => Login::Ready { used: line.len() },
            (_, Parsed::Head(line)) => Login::Refused(format!("the server said {}", line.trim_end())),
            (_, Parsed::Bad(_)) => Login::Refused("the server said no line".into()),
        }
    }
}
