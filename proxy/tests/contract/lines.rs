//! The test protocol, which consists of lines.
//!
//! ```text
//!  server: HELLO salt                 client: GET key      server: = value | ~ wrong | ? failed
//!  client: LOGIN user answer                  PUT key value        +
//!  server: WELCOME [old] | DENIED             MANY key count       - part (count times), then . count; a large part is
//!                                                                  & length and the bytes
//!  server, at any time: ! news                NEST key count       * count, then as many replies, each nested or not
//!                                             BATCH key count      + (behind the request come as many lines: key value)
//!                                             TELL key value       (nothing)
//!                                             TAKE key key …       # how many there were, and are no more
//!                                             SOME key key …       * count, then what GET brings of each
//!                                             PAIRS key value …    + (all of them are put)
//!                                             WHO key              = connection number of the server
//!                                             WAIT key ms          + after so many milliseconds; 0: never
//!                                             HOLD key             + (the connection is the client's, until FREE)
//!                                             FREE key             +
//!                                             SPOIL key            + (nobody is to have this connection any more)
//!                                             WATCH key count      + (and ! key value, as often as it is put)
//!                                             USE name             + (from here on as this user of the server)
//!                                             WHOAMI key           = name, connection number of the server
//!                                             BYE                  (closes)
//!                                             BLOB key count       + (behind the line come as many bytes)
//!                                             AS name              + (from here on it is spoken to by name, and nothing of
//!                                                                  others, `name:…`, is its business)
//!                                             ID key               = number of the client
//!                                             CANCEL number        + (the server has ended what it does for that client)
//!                                             SUM key              = name, of the server that speaks for all
//!                                             RELOG key            + (and HELLO with a salt that nobody has had)
//!                                             EACH key             + (from here on each request has a connection of its own)
//!                                             VAR key value        + (the connection knows the value until RESET)
//!                                             TELLME key           = the value that the connection knows
//!                                             KEEP key value       + (as VAR, but the proxy knows the value as well: a
//!                                                                  connection that does not is told before the next
//!                                                                  TELLME, and its answer is awaited)
//!                                             RUN key text         = what came of it; the server knows the text by a
//!                                                                  number of the connection: PREP number text, +, then
//!                                                                  EXEC number key
//!                                             SURE key text        as RUN, but EXEC is sent when the server has taken the
//!                                                                  text, and not at all if it has not. So is a BLOB whose
//!                                                                  key begins with `sure`
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use proxima::protocol::{
    Access, Admission, AdmissionContext, ClientSide, Control, End, EndState, Ending, Failed, Join, Plan,
    PoolSettings, PoolState, Protocol, Protocols, Replier, Requests, Retention, ServerAnswer, Session,
    StateSlot, Transform,
};
use proxima_wire::message::{Bad, Class, NextKey, Outcome, Parse, Parsed, Reply, Request, Span};

use crate::{lane::Lane, scramble::Scramble, server::PASSWORD};

/// The protocol, for clients and for servers.
pub(crate) struct Lines {
    /// The password at servers.
    pub(crate) password: &'static str,
    /// Both sides speak plainly until one asks for the transform (`SECURE`) and the other agrees (`GO`).
    pub(crate) is_late: bool,
    /// The transform is TLS, as the configuration has it.
    is_tls: bool,
    /// What it keeps for a pool.
    state: Option<StateOf>,
    /// Whether it writes requests for each lane.
    pub(crate) fits: bool,
    /// Whether it greets clients with what servers tell of themselves, in place of a salt.
    greets: bool,
    /// The number of bytes of requests and replies that were parsed.
    pub(crate) read: AtomicU64,
}

/// What the protocol keeps for a client.
#[derive(Default)]
pub(crate) struct Client {
    /// With which it proves that it knows the password.
    salt: String,
    /// It logs in once more.
    again: bool,
    /// As whom it is spoken to (`AS`).
    name: Vec<u8>,
    /// All of its requests are for its dedicated connection (`HOLD`).
    holds: bool,
    /// Each of its requests has a dedicated connection for itself (`EACH`).
    each: bool,
    /// The server keeps something for it that a reset removes (`VAR`).
    is_dirty: bool,
    /// What each of its connections has to know (`KEEP`).
    kept: Option<String>,
}

impl EndState for Client {
    fn memory(&self) -> usize {
        self.name.capacity()
    }
}

impl Client {
    /// What the connection of this session has to know.
    pub(crate) fn kept(session: &Session) -> Option<&str> {
        Self::of(session)?.kept.as_deref()
    }

    fn of(session: &Session) -> Option<&Self> {
        session.state.get()
    }

    fn name(session: &Session) -> &[u8] {
        Self::of(session).map_or(b"", |client| &client.name)
    }
}

/// Makes the state of a pool.
pub(crate) type StateOf = fn(&PoolSettings<'_>) -> Box<dyn PoolState>;

static KNOWN: Lines = Lines::new(PASSWORD);
/// The protocols of a process that speaks only this protocol.
pub(crate) static LINES: Protocols = Protocols::new(&[&KNOWN]);

pub(crate) const COMMANDS: [&str; 34] = [
    "GET", "PUT", "MANY", "BYE", "NEST", "BATCH", "TELL", "AS", "TAKE", "SOME", "PAIRS", "WHO", "WAIT",
    "HOLD", "FREE", "SPOIL", "WATCH", "USE", "WHOAMI", "BLOB", "RUN", "PREP", "EACH", "VAR", "TELLME",
    "RESET", "RELOG", "ID", "CANCEL", "STOP", "MARK", "SUM", "SURE", "KEEP",
];
const CLASSES: [Class; 34] = [
    Class::Read,
    Class::Write,
    Class::Read,
    Class::Session,
    Class::Read,
    Class::Write,
    Class::Write,
    Class::Session,
    Class::Delete,
    Class::Read,
    Class::Write,
    Class::Read,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Read,
    Class::Write,
    Class::Read,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Session,
    Class::Read,
    Class::Session,
];
pub(crate) const UNKNOWN: &[u8] = b"? no such command\n";
/// No line is longer.
const LONGEST: usize = 16 * 1024;
/// The proof of the password, which does not contain it.
pub(crate) fn answer(salt: &str, password: &str) -> String {
    format!(
        "{:08x}",
        xxhash_rust::xxh3::xxh3_64(format!("{salt}{password}").as_bytes())
    )
}

/// Each server has its own nonce, which is derived from its port.
fn scramble(end: End<'_>) -> Box<dyn Transform> {
    Box::new(match end {
        End::Client { .. } => Scramble::accepting(),
        End::Server { address, .. } => Scramble::connecting(nonce(address)),
    })
}

/// The proof that the server at this address expects.
pub(crate) fn nonce(address: &str) -> u8 {
    let port = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse::<u16>().ok());
    port.unwrap_or(0) as u8
}

/// Does this line prove that the client is a user of the listener?
fn is_login(session: &Session, salt: &str, line: &str) -> bool {
    let mut words = line.trim_end().split(' ');
    let (Some("LOGIN"), Some(user), Some(proof)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let secret = match &session.access {
        Access::Accounts(accounts) => accounts.secret(user.as_bytes()),
        Access::Open | Access::Pass => (user == "app").then_some(&b"open sesame"[..]),
    };
    secret.is_some_and(|secret| answer(salt, &String::from_utf8_lossy(secret)) == proof)
}

/// The number of a command.
pub(crate) fn number(name: &str) -> u16 {
    COMMANDS.iter().position(|&known| known == name).unwrap() as u16
}

/// The first line, with its line end.
pub(crate) fn line(bytes: &[u8]) -> Parsed<&str> {
    match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            std::str::from_utf8(&bytes[..=end]).map_or(Parsed::Bad(Bad::fatal(UNKNOWN)), Parsed::Head)
        }
        None if bytes.len() > LONGEST => Parsed::Bad(Bad::fatal(UNKNOWN)),
        None => Parsed::More,
    }
}

impl Lines {
    pub(crate) const fn new(password: &'static str) -> Self {
        Self {
            password,
            is_late: false,
            is_tls: false,
            state: None,
            fits: false,
            greets: false,
            read: AtomicU64::new(0),
        }
    }

    /// A protocol that begins plainly, or behind TLS if the configuration has it, and goes on with a transform
    /// of its own.
    pub(crate) const fn late(password: &'static str) -> Self {
        Self {
            is_late: true,
            ..Self::new(password)
        }
    }

    /// A protocol that begins plainly and goes on with TLS, as the configuration has it.
    pub(crate) const fn late_tls(password: &'static str) -> Self {
        Self {
            is_tls: true,
            ..Self::late(password)
        }
    }

    /// A protocol that keeps this for each pool.
    pub(crate) const fn stateful(password: &'static str, state: StateOf) -> Self {
        Self {
            state: Some(state),
            ..Self::new(password)
        }
    }

    /// The same, which counts what is put where it is answered.
    pub(crate) const fn counting(password: &'static str, state: StateOf) -> Self {
        Self {
            fits: true,
            ..Self::stateful(password, state)
        }
    }

    /// A protocol that greets clients with what servers tell of themselves, and keeps this for each pool.
    pub(crate) const fn greeting(password: &'static str, state: StateOf) -> Self {
        Self {
            greets: true,
            ..Self::stateful(password, state)
        }
    }

    /// A protocol that writes each request for the lane on which it leaves.
    pub(crate) const fn fitting(password: &'static str) -> Self {
        Self {
            fits: true,
            ..Self::new(password)
        }
    }

    /// The next line of a message. `parse` records how much of it was read.
    pub(crate) fn next<'a>(&self, parse: &mut Parse, bytes: &'a [u8]) -> Parsed<&'a str> {
        let rest = bytes.get(parse.seen as usize..).unwrap_or_default();
        let line = line(rest);
        let read = match line {
            Parsed::Head(line) => line.len(),
            Parsed::More | Parsed::Bad(_) => rest.len(),
        };
        self.read.fetch_add(read as u64, Relaxed);
        line.map(|line| {
            parse.seen += line.len() as u32;
            line
        })
    }
}

impl Protocol for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn commands(&self) -> &'static [&'static str] {
        &COMMANDS
    }

    fn may_repeat(&self, _: u16) -> bool {
        true
    }

    fn is_same_everywhere(&self, _: u16) -> bool {
        true
    }

    fn pool_state(&self, settings: &PoolSettings<'_>) -> Option<Box<dyn PoolState>> {
        self.state.map(|state| state(settings))
    }

    fn upgrades(&self) -> bool {
        self.is_tls
    }

    fn transform(&self, end: End<'_>) -> Option<Box<dyn Transform>> {
        (!self.is_late).then(|| scramble(end))
    }

    /// Only the first listener offers the transform.
    fn upgrade(&self, end: End<'_>) -> Option<Box<dyn Transform>> {
        let is_offered = !self.is_tls && !matches!(end, End::Client { listener: 1.. });
        is_offered.then(|| scramble(end))
    }
}

impl ClientSide for Lines {
    /// The version that the first server has told, and what all of them can.
    fn greeting(&self, said: &[Arc<[u8]>], configured: Option<&str>, out: &mut Vec<u8>) {
        if !self.greets {
            return;
        }
        let words = |said: &Arc<[u8]>| String::from_utf8_lossy(said).into_owned();
        let all: Vec<String> = said.iter().filter(|said| !said.is_empty()).map(words).collect();
        let version = all.first().and_then(|said| said.split(' ').next());
        out.extend_from_slice(version.or(configured).unwrap_or("unknown").as_bytes());
        let common = |word: &&str| all.iter().all(|said| said.split(' ').any(|other| other == *word));
        for word in all
            .first()
            .iter()
            .flat_map(|said| said.split(' ').skip(1))
            .filter(common)
        {
            out.push(b'+');
            out.extend_from_slice(word.as_bytes());
        }
    }

    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        let key = request.key.of(message);
        match (COMMANDS[request.command as usize], request.class) {
            ("AS", _) => {
                session
                    .state
                    .change(|client: &mut Client| client.name = key.to_vec());
                session.form = u16::from(!key.is_empty());
                session.plans_all = !key.is_empty();
                out.extend_from_slice(b"+\n");
                Plan::Answer
            }
            ("USE", _) => {
                session.login = key.to_vec();
                out.extend_from_slice(b"+\n");
                Plan::Answer
            }
            ("ID", _) => {
                out.extend_from_slice(format!("= {}\n", session.id).as_bytes());
                Plan::Answer
            }
            ("CANCEL", _) if !session.is_idle => Plan::Later,
            ("CANCEL", _) => Plan::Consult,
            ("SUM", _) => Plan::Everywhere,
            ("RELOG", _) if !session.is_idle => Plan::Later,
            ("RELOG", _) => {
                session.state.change(|client: &mut Client| client.again = true);
                out.extend_from_slice(b"+\n");
                Plan::Admit
            }
            ("EACH", _) => {
                session.state.change(|client: &mut Client| client.each = true);
                session.plans_all = true;
                out.extend_from_slice(b"+\n");
                Plan::Answer
            }
            ("KEEP", _) => {
                let value = message["KEEP ".len() + key.len()..].trim_ascii();
                let value = String::from_utf8_lossy(value).into_owned();
                session
                    .state
                    .change(|client: &mut Client| client.kept = Some(value));
                session.retention = Retention::Kept;
                Plan::Dedicated
            }
            ("VAR" | "TELLME", _) => {
                session.state.change(|client: &mut Client| client.is_dirty = true);
                if Client::kept(session).is_some() {
                    session.retention = Retention::Kept;
                }
                if session.retention != Retention::Kept {
                    session.retention = Retention::Dirty;
                }
                Plan::Dedicated
            }
            (word @ ("WAIT" | "HOLD" | "FREE" | "SPOIL" | "WATCH"), _) => {
                match word {
                    "HOLD" | "WATCH" => {
                        session.state.change(|client: &mut Client| client.holds = true);
                        session.plans_all = true;
                        session.retention = Retention::Kept;
                    }
                    "SPOIL" => session.retention = Retention::Spoilt,
                    _ => {}
                }
                Plan::Dedicated
            }
            (_, Class::Session) => Plan::Reject("the proxy cannot tell which server this is for"),
            _ if Client::of(session).is_some_and(|client| client.holds || client.each) => Plan::Dedicated,
            _ if !key.contains(&b':') || key.starts_with(&[Client::name(session), b":"].concat()) => {
                Plan::Route
            }
            _ => Plan::Reject("this belongs to somebody else"),
        }
    }

    fn split(
        &self,
        _: &Session,
        request: &Request,
        message: &[u8],
        begin: &mut Vec<u8>,
    ) -> Option<&'static Join> {
        let others = request.more_keys.of(message).split(|&byte| byte == b' ');
        let keys = 1 + others.filter(|key| !key.is_empty()).count();
        match COMMANDS[request.command as usize] {
            "SOME" => {
                begin.extend_from_slice(format!("* {keys}\n").as_bytes());
                Some(&Join::List)
            }
            "TAKE" => Some(&Join::Sum {
                total: |sum, out| out.extend_from_slice(format!("# {sum}\n").as_bytes()),
            }),
            "PAIRS" => Some(&Join::Sum {
                total: |_, out| out.extend_from_slice(b"+\n"),
            }),
            _ => None,
        }
    }

    fn consulted(&self, message: &[u8], control: &dyn Control, out: &mut Vec<u8>) {
        let session = String::from_utf8_lossy(&message["CANCEL ".len()..])
            .trim()
            .parse();
        let agreed = session.is_ok_and(|session| control.cancel(session, Ending::Request));
        out.extend_from_slice(if agreed { b"+\n" } else { b"? nothing to cancel\n" });
    }

    fn next_key(&self, request: &Request, bytes: &[u8]) -> NextKey {
        let start = bytes.iter().take_while(|&&byte| byte == b' ').count();
        let words = match COMMANDS[request.command as usize] {
            "PAIRS" => 2,
            _ => 1,
        };
        let is_end = |&byte: &u8| byte == b' ' || byte == b'\n';
        if bytes.get(start) == Some(&b'\n') {
            return NextKey::End(start + 1);
        }
        let mut end = start;
        for word in 0..words {
            let begin = end + word.min(1);
            match bytes[begin..].iter().position(is_end) {
                Some(length) => end = begin + length,
                None => return NextKey::More(0),
            }
        }
        NextKey::Key(Span::new(start, end))
    }

    fn single(&self, request: &Request, _: &[u8], key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(match COMMANDS[request.command as usize] {
            "SOME" => b"GET ",
            "PAIRS" => b"PUT ",
            _ => b"TAKE ",
        });
        out.extend_from_slice(key);
        out.push(b'\n');
    }

    /// What a client keeps is told to its next connection, unless this one knew more.
    fn outlives(&self, session: &mut Session, lane: &StateSlot) -> bool {
        let has_all = Client::of(session).is_some_and(|client| client.kept.is_some() && !client.holds);
        has_all && Client::kept(session) == Lane::knows(lane)
    }

    fn answered(&self, session: &mut Session, _: &Replier<'_>, command: u16, _: &Reply, _: &[u8]) {
        if COMMANDS[command as usize] == "FREE" {
            session.state.change(|client: &mut Client| client.holds = false);
            session.plans_all = session.form != 0 || Client::of(session).is_some_and(|client| client.each);
            session.retention = match Client::of(session).is_some_and(|client| client.is_dirty) {
                true => Retention::Dirty,
                false => Retention::Clean,
            };
        }
    }

    fn error(&self, session: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        let to = match (session.form, String::from_utf8_lossy(Client::name(session))) {
            (0, _) => String::new(),
            (_, name) => format!(" to {name}"),
        };
        out.extend_from_slice(format!("? proxy{to}: {failed}\n").as_bytes());
    }

    fn admit(
        &self,
        session: &mut Session,
        with: &AdmissionContext<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Admission {
        let begins = Client::of(session).is_none_or(|client| client.again);
        if begins {
            let is_first = Client::of(session).is_none();
            let salt = match is_first {
                true if self.greets => String::from_utf8_lossy(with.greeting).into_owned(),
                true => "pepper".to_owned(),
                false => format!("{:016x}{:016x}", with.random[0], with.random[3]),
            };
            out.extend_from_slice(format!("HELLO {salt}\n").as_bytes());
            session
                .state
                .change(|client: &mut Client| (client.salt, client.again) = (salt, false));
        }
        let salt = Client::of(session).map_or("", |client| &client.salt);
        match line(bytes) {
            Parsed::Head("SECURE\n") if self.is_tls && session.form == 0 && !with.offers_tls => {
                Admission::Denied
            }
            Parsed::Head(line @ "SECURE\n") if self.is_late && session.form == 0 => {
                session.form = 1;
                out.extend_from_slice(b"GO\n");
                Admission::Upgrade { used: line.len() }
            }
            Parsed::Head(_) if self.is_late && session.form == 0 => Admission::Denied,
            Parsed::Head(line) if is_login(session, salt, line) => {
                out.extend_from_slice(b"WELCOME\n");
                Admission::Ready { used: line.len() }
            }
            // Whether this user may be served is what a server says.
            Parsed::Head(line) if line.starts_with("ASK ") => {
                session.login = line[4..].trim_end().as_bytes().to_vec();
                Admission::Ask {
                    used: line.len(),
                    request: b"WHOAMI k\n".to_vec(),
                }
            }
            // Others are before it, twice.
            Parsed::Head("QUEUE\n") if session.form < 2 => {
                session.form += 1;
                Admission::Later
            }
            Parsed::Head(line @ "QUEUE\n") => {
                session.form = 0;
                out.extend_from_slice(b"WELCOME\n");
                Admission::Ready { used: line.len() }
            }
            Parsed::More => Admission::More { used: 0 },
            _ => {
                out.extend_from_slice(b"DENIED\n");
                Admission::Denied
            }
        }
    }

    fn heard(
        &self,
        _: &mut Session,
        _: &AdmissionContext<'_>,
        heard: ServerAnswer<'_>,
        out: &mut Vec<u8>,
    ) -> Admission {
        match heard {
            ServerAnswer::Reply(reply, bytes) if !reply.outcome.is_error() => {
                out.extend_from_slice(b"WELCOME ");
                out.extend_from_slice(&bytes[2..]);
                Admission::Ready { used: 0 }
            }
            ServerAnswer::Reply(_, bytes) => {
                out.extend_from_slice(bytes);
                Admission::Denied
            }
            ServerAnswer::Failed(failed) => {
                out.extend_from_slice(format!("? nobody knows: {failed}\n").as_bytes());
                Admission::Denied
            }
        }
    }
}

impl Requests for Lines {
    fn request(&self, parse: &mut Parse, bytes: &[u8], _: u64) -> Parsed<Request> {
        let mut body = 0;
        if parse.is_new() {
            let begun = self.next(parse, bytes).and_then(|line| {
                let mut words = line.trim_end().split(' ');
                let [name, key, count] = [0; 3].map(|_| words.next().unwrap_or_default());
                let Some(command) = self.command(name) else {
                    return Parsed::Bad(Bad::refused(line.len(), UNKNOWN));
                };
                let count = count.parse().unwrap_or(0);
                let lines = if name == "BATCH" { count } else { 0 };
                if name == "BLOB" {
                    body = u64::from(count);
                }
                Parsed::Head((
                    command,
                    Span::new(name.len() + 1, name.len() + 1 + key.len()),
                    lines,
                ))
            });
            let (command, key, lines) = match begun {
                Parsed::Head(begun) => begun,
                Parsed::More => return Parsed::More,
                Parsed::Bad(bad) => {
                    *parse = Parse::default();
                    return Parsed::Bad(bad);
                }
            };
            parse.left = lines;
            parse.progress = [u32::from(command), key.len];
        }
        while parse.left > 0 {
            match self.next(parse, bytes) {
                Parsed::Head(_) => parse.left -= 1,
                Parsed::More => return Parsed::More,
                Parsed::Bad(bad) => {
                    *parse = Parse::default();
                    return Parsed::Bad(bad);
                }
            }
        }
        let Parse {
            seen,
            progress: [command, key],
            ..
        } = std::mem::take(parse);
        let word = COMMANDS[command as usize];
        let name = word.len() as u32;
        let is_unanswered = word == "TELL";
        // The line end is not part of the line.
        let end = name as usize + 1 + key as usize;
        let more_keys = match word {
            "TAKE" | "SOME" | "PAIRS" => Span::new(end, (seen as usize - 1).max(end)),
            _ => Span { start: 0, len: 0 },
        };
        Parsed::Head(Request {
            body,
            key: Span {
                start: name + 1,
                len: key,
            },
            more_keys,
            extra_timeout: match word {
                "WAIT" => match bytes[end..seen as usize].trim_ascii() {
                    b"0" => u32::MAX,
                    millis => String::from_utf8_lossy(millis).parse().unwrap_or(0),
                },
                _ => 0,
            },
            is_quiet: is_unanswered,
            is_unanswered,
            ..Request::new(command as u16, CLASSES[command as usize], seen as usize)
        })
    }

    fn number(&self, reply: &Reply, bytes: &[u8]) -> i64 {
        match reply.outcome {
            Outcome::Deleted => String::from_utf8_lossy(&bytes[1..]).trim().parse().unwrap_or(0),
            _ => 1,
        }
    }

    fn miss(&self, form: u16, _: &Request, _: &[u8], out: &mut Vec<u8>) -> Reply {
        out.extend_from_slice(if form == 0 {
            b"? nothing\n"
        } else {
            b"? nothing for you\n"
        });
        Reply::new(Outcome::NotFound, out.len())
    }
}
