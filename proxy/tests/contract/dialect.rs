//! The protocol: lines.
//!
//! ```text
//!  server: HELLO salt                 client: GET key      server: = value | ? error
//!  client: LOGIN user answer                  PUT key value        +
//!  server: WELCOME | DENIED                   MANY key count       - part (count times), then . count
//!  server, at any time: ! news
//! ```

use proxima::dialect::{Change, Conversation, Dialect, Login, Message, Plan, Side, Transform};
use proxima_wire::message::{Bad, Class, Outcome, Parsed, Reply, Request, Span};

use crate::scramble::Scramble;

/// As the client and as the server of this protocol.
pub(crate) struct Lines {
    /// At servers.
    pub(crate) password: &'static str,
}

pub(crate) const GET: u8 = 0;
const PUT: u8 = 1;
const MANY: u8 = 2;
const COMMANDS: [(&str, u8, Class); 3] = [
    ("GET", GET, Class::Read),
    ("PUT", PUT, Class::Write),
    ("MANY", MANY, Class::Read),
];
/// No line is longer.
const LONGEST: usize = 16 * 1024;

/// What proves that one knows the password without saying it.
pub(crate) fn answer(salt: &str, password: &str) -> String {
    format!(
        "{:08x}",
        xxhash_rust::xxh3::xxh3_64(format!("{salt}{password}").as_bytes())
    )
}

fn line(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some(std::str::from_utf8(&bytes[..end]).unwrap_or("not text"))
}

const BAD: Bad = Bad {
    reply: b"? no such command\n",
    head: 0,
    swallow: 0,
    close: true,
};

impl Dialect for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn command(&self, name: &str) -> Option<u8> {
        COMMANDS
            .iter()
            .find(|command| command.0 == name)
            .map(|command| command.1)
    }

    fn command_name(&self, command: u8) -> &'static str {
        COMMANDS
            .get(usize::from(command))
            .map_or("?", |command| command.0)
    }

    fn transform(&self, side: Side) -> Option<Box<dyn Transform>> {
        Some(Box::new(match side {
            Side::Client => Scramble::accepting(),
            Side::Server => Scramble::connecting(77),
        }))
    }

    fn admit(&self, conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        if conversation.step == 0 {
            conversation.step = 1;
            conversation.notes = b"pepper".to_vec();
            out.extend_from_slice(b"HELLO pepper\n");
            return Login::More { used: 0 };
        }
        let Some(line) = line(bytes) else {
            return Login::More { used: 0 };
        };
        let salt = String::from_utf8_lossy(&conversation.notes);
        if line == format!("LOGIN app {}", answer(&salt, "open sesame")) {
            out.extend_from_slice(b"WELCOME\n");
            return Login::Ready { used: line.len() + 1 };
        }
        out.extend_from_slice(b"DENIED\n");
        Login::Refused("wrong password".into())
    }

    fn login(&self, conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        let Some(line) = line(bytes) else {
            return Login::More { used: 0 };
        };
        let used = line.len() + 1;
        match (conversation.step, line.split_once(' ').unwrap_or((line, ""))) {
            (0, ("HELLO", salt)) => {
                conversation.step = 1;
                out.extend_from_slice(format!("LOGIN proxy {}\n", answer(salt, self.password)).as_bytes());
                Login::More { used }
            }
            (1, ("WELCOME", _)) => Login::Ready { used },
            _ => Login::Refused(format!("the server said {line}")),
        }
    }

    fn request(&self, bytes: &[u8], _: u64) -> Parsed<Request> {
        let Some(line) = line(bytes) else {
            return if bytes.len() > LONGEST {
                Parsed::Bad(BAD)
            } else {
                Parsed::More
            };
        };
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let Some(&(_, command, class)) = COMMANDS.iter().find(|command| command.0 == name) else {
            return Parsed::Bad(Bad {
                head: line.len() as u32 + 1,
                close: false,
                ..BAD
            });
        };
        let key = rest.split(' ').next().unwrap_or(rest);
        Parsed::Head(Request {
            command,
            class,
            head: line.len() as u32 + 1,
            body: 0,
            key: Span::new(name.len() + 1, name.len() + 1 + key.len()),
            more_keys: Span::default(),
            ttl: Span::default(),
            quiet: Span::default(),
            is_quiet: false,
            base64_key: false,
        })
    }

    fn check_end(&self, _: &[u8]) -> Result<(), &'static [u8]> {
        Ok(())
    }

    fn plan(&self, _: &Request, _: &[u8]) -> Plan {
        Plan::Route
    }

    fn reply(&self, _: u8, bytes: &[u8]) -> Parsed<Message> {
        let Some(line) = line(bytes) else {
            return if bytes.len() > LONGEST {
                Parsed::Bad(BAD)
            } else {
                Parsed::More
            };
        };
        let reply = |outcome| Reply {
            outcome,
            head: line.len() as u32 + 1,
            body: 0,
            trailer: 0,
        };
        Parsed::Head(match line.as_bytes().first() {
            Some(b'!') => Message::Push(reply(Outcome::Ok)),
            Some(b'-') => Message::Part(reply(Outcome::Ok)),
            Some(b'.') => Message::Last(reply(Outcome::Ok)),
            Some(b'=') => Message::Last(reply(Outcome::Found)),
            Some(b'+') => Message::Last(reply(Outcome::Stored)),
            Some(b'?') => Message::Last(reply(Outcome::RemoteError)),
            _ => return Parsed::Bad(BAD),
        })
    }

    fn is_whole(&self, _: &Reply, _: &[u8]) -> bool {
        true
    }

    fn silenced(&self, _: u8, _: Outcome) -> bool {
        false
    }

    fn key<'a>(&self, request: &Request, message: &'a [u8], _: &'a mut [u8; 250]) -> &'a [u8] {
        request.key.of(message)
    }

    fn keys(&self, request: &Request, _: &[u8], each: &mut dyn FnMut(Span)) {
        each(request.key);
    }

    fn single(&self, _: &Request, message: &[u8], _: Span, out: &mut Vec<u8>) {
        out.extend_from_slice(message);
    }

    fn rewrite(&self, _: &Request, _: &[u8], _: &Change<'_>, _: &mut Vec<u8>) -> bool {
        false
    }

    fn rewrite_reply_key(&self, _: u8, _: &[u8], reply: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(reply);
    }

    fn miss(&self, _: &Request, _: &[u8], out: &mut Vec<u8>) -> Outcome {
        out.extend_from_slice(b"? nothing\n");
        Outcome::NotFound
    }

    fn error(&self, _: Outcome, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("? proxy: {text}\n").as_bytes());
    }

    fn example(&self, command: &str, key: &[u8]) -> Vec<u8> {
        [command.as_bytes(), b" ", key, b" 1\n"].concat()
    }

    fn probe(&self) -> (u8, &'static [u8]) {
        (GET, b"GET probe\n")
    }
}
