//! The end of the test protocol at which its servers are, and what it keeps for each connection to them.

use std::collections::HashMap;

use proxima::protocol::{
    EndState, Login, Message, Outgoing, PoolCount, ServerLogin, ServerSide, Session, StateSlot, WriteResult,
};
use proxima_wire::message::{Bad, Outcome, Parse, Parsed, Reply, Request};

use crate::lines::{COMMANDS, Client, Lines, UNKNOWN, answer, line, number as number_of};

/// What the protocol keeps for a connection to a server.
#[derive(Default)]
pub(crate) struct Lane {
    step: Step,
    /// The words of the login, which wait until the transform is in place.
    login: Vec<u8>,
    /// The number by which the server knows the connection.
    number: u64,
    /// The server ends replies of many parts with another word.
    is_terse: bool,
    /// The numbers of the texts that the server knows here.
    known: HashMap<Vec<u8>, usize>,
    /// The number of the next text.
    next: usize,
    /// Texts that the server is being told of, in order, with their numbers, and what it has said of the last
    /// one if it took it not.
    told: Vec<(Vec<u8>, usize)>,
    failed: Option<Vec<u8>>,
    /// The value that the server knows here, or is being told.
    value: Option<String>,
    /// What its pool counts.
    count: PoolCount,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Step {
    #[default]
    Greeting,
    /// The server is asked for the transform.
    Securing,
    /// The transform begins.
    Secured,
    LoggingIn,
}

impl EndState for Lane {
    fn memory(&self) -> usize {
        self.login.capacity() + self.known.keys().map(Vec::capacity).sum::<usize>()
    }
}

type Kind = fn(Reply) -> Message;
/// The first characters of a server's lines.
const REPLIES: [(u8, Kind, Outcome); 10] = [
    (b'!', Message::Push, Outcome::Ok),
    (b'-', Message::Part, Outcome::Ok),
    (b'.', Message::Last, Outcome::Ok),
    (b';', Message::Last, Outcome::Ok),
    (b'=', Message::Last, Outcome::Found),
    (b'*', Message::Last, Outcome::Found),
    (b'~', Message::Last, Outcome::ClientError),
    (b'+', Message::Last, Outcome::Stored),
    (b'#', Message::Last, Outcome::Deleted),
    (b'?', Message::Last, Outcome::RemoteError),
];
/// This many bytes of a nested reply are passed on before the rest has come.
const PORTION: u32 = 8 * 1024;

impl ServerSide for Lines {
    fn reply(&self, lane: &StateSlot, parse: &mut Parse, _: u16, bytes: &[u8]) -> Parsed<Message> {
        let is_terse = lane.get::<Lane>().is_some_and(|lane| lane.is_terse);
        loop {
            let line = match self.next(parse, bytes) {
                Parsed::Head(line) => line,
                Parsed::More => return Parsed::More,
                Parsed::Bad(bad) => return Parsed::Bad(bad),
            };
            let first = line.as_bytes()[0];
            if first == b'&' {
                parse.progress[0] += 1;
                let head = std::mem::take(&mut parse.seen) as usize;
                let body = line[1..].trim().parse().unwrap_or(0);
                return Parsed::Head(Message::Part(Reply {
                    body,
                    ..Reply::new(Outcome::Ok, head)
                }));
            }
            let Some((kind, message, outcome)) = REPLIES.iter().find(|reply| first == reply.0) else {
                return Parsed::Bad(Bad::fatal(UNKNOWN));
            };
            match kind {
                b'!' if parse.left == 0 => {
                    let seen = std::mem::take(&mut parse.seen);
                    return Parsed::Head(Message::Push(Reply::new(*outcome, seen as usize)));
                }
                b'-' => {
                    parse.progress[0] += 1;
                    let seen = std::mem::take(&mut parse.seen);
                    return Parsed::Head(Message::Part(Reply::new(*outcome, seen as usize)));
                }
                // What was noted before the parts is there behind them.
                b'.' | b';'
                    if is_terse != (*kind == b';')
                        || line[1..].trim().parse().ok() != Some(parse.progress[0]) =>
                {
                    return Parsed::Bad(Bad::fatal(UNKNOWN));
                }
                _ => {}
            }
            // This reply was one of those that were due. Its own elements are now due as well.
            let own = match kind {
                b'*' => line[1..].trim().parse().unwrap_or(0),
                _ => 0,
            };
            parse.left = parse.left.saturating_sub(1) + own;
            if parse.left == 0 {
                let seen = std::mem::take(parse).seen;
                return Parsed::Head(message(Reply::new(*outcome, seen as usize)));
            }
            if parse.seen > PORTION {
                let seen = std::mem::take(&mut parse.seen);
                return Parsed::Head(Message::Part(Reply::new(Outcome::Ok, seen as usize)));
            }
        }
    }

    fn is_common(&self, command: u16) -> bool {
        COMMANDS[command as usize] != "BATCH"
    }

    fn probe(&self) -> (u16, &'static [u8]) {
        (0, b"GET probe\n")
    }

    fn login(
        &self,
        lane: &mut StateSlot,
        with: &mut ServerLogin<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Login {
        let mut step = Login::More { used: 0 };
        lane.change(|lane: &mut Lane| {
            lane.count = with.count.clone();
            step = self.log_in(lane, with, bytes, out);
        });
        step
    }

    /// A lane on which the server knows most texts suits everybody best.
    fn suits(&self, lane: &StateSlot, _: &Session) -> u32 {
        lane.get::<Lane>().map_or(0, |lane| lane.known.len() as u32)
    }

    fn cancel(&self, lane: &StateSlot, out: &mut Vec<u8>) -> Option<u16> {
        let number = lane.get::<Lane>()?.number;
        out.extend_from_slice(format!("STOP {number}\n").as_bytes());
        Some(number_of("STOP"))
    }

    fn reset(&self, _: &mut StateSlot, out: &mut Vec<u8>) -> Option<u16> {
        out.extend_from_slice(b"RESET\n");
        Some(number_of("RESET"))
    }

    fn fits_requests(&self) -> bool {
        self.fits
    }

    /// A text that is run gets a number at each server connection, which the server is told before.
    fn write(
        &self,
        lane: &mut StateSlot,
        session: &Session,
        request: &Request,
        message: &[u8],
        out: &mut Outgoing<'_>,
    ) -> WriteResult {
        let Some(lane) = lane.get_mut::<Lane>() else {
            return WriteResult::Whole;
        };
        let key = request.key.of(message);
        let text = message[request.key.start as usize + key.len()..].trim_ascii();
        match COMMANDS[request.command as usize] {
            "RUN" => {
                let number = lane.known.get(text).copied();
                let number = number.unwrap_or_else(|| {
                    let fresh = lane.tell(text, out);
                    lane.known.insert(text.to_owned(), fresh);
                    fresh
                });
                execute(number, key, out)
            }
            "SURE" => match lane.sure(text, out) {
                Ok(number) => execute(number, key, out),
                Err(written) => written,
            },
            "BLOB" if key.starts_with(b"sure") => match lane.sure(&[key, b" blob"].concat(), out) {
                Ok(_) => {
                    out.request().extend_from_slice(message);
                    WriteResult::Whole
                }
                Err(written) => written,
            },
            "TELLME" if Client::kept(session).is_some_and(|kept| lane.value.as_deref() != Some(kept)) => {
                let value = Client::kept(session).unwrap_or_default();
                lane.value = Some(value.to_owned());
                out.ask_before(number_of("VAR"), |out| {
                    out.extend_from_slice(format!("VAR k {value}\n").as_bytes());
                });
                WriteResult::Waits
            }
            word => {
                if matches!(word, "VAR" | "KEEP") {
                    lane.value = Some(String::from_utf8_lossy(text).into_owned());
                }
                out.request().extend_from_slice(message);
                WriteResult::Whole
            }
        }
    }

    fn finish(
        &self,
        lane: &mut StateSlot,
        session: &Session,
        command: u16,
        reply: &Reply,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Reply> {
        let lane = lane.get_mut::<Lane>()?;
        match COMMANDS[command as usize] {
            // It is counted before its client is told of it.
            "PUT" if !reply.outcome.is_error() => {
                lane.count.raise();
                None
            }
            "PREP" => {
                let (text, number) = lane.told.remove(0);
                lane.failed = reply.outcome.is_error().then(|| bytes.to_vec());
                match lane.failed {
                    Some(_) => lane.known.remove(&text),
                    // A mistake of the codec: the text is told for ever.
                    None if text == b"sure endless" => None,
                    None => lane.known.insert(text, number),
                };
                None
            }
            "RUN" => {
                out.append(&mut lane.failed.take()?);
                Some(Reply::new(Outcome::ClientError, out.len()))
            }
            // Every client hears the same word.
            "MANY" if bytes.starts_with(b";") => {
                out.push(b'.');
                out.extend_from_slice(&bytes[1..]);
                Some(Reply::new(reply.outcome, out.len()))
            }
            "WHO" if session.form != 0 => {
                out.extend_from_slice(b"= somebody for you\n");
                Some(Reply::new(reply.outcome, out.len()))
            }
            _ => None,
        }
    }
}

/// Writes that a text is executed for a key.
fn execute(number: usize, key: &[u8], out: &mut Outgoing<'_>) -> WriteResult {
    out.request()
        .extend_from_slice(format!("EXEC {number} ").as_bytes());
    out.request().extend_from_slice(key);
    out.request().push(b'\n');
    WriteResult::Whole
}

impl Lane {
    /// The value that the server knows on this lane.
    pub(crate) fn knows(lane: &StateSlot) -> Option<&str> {
        lane.get::<Self>()?.value.as_deref()
    }

    /// Has the server told of a text, by this number.
    fn tell(&mut self, text: &[u8], out: &mut Outgoing<'_>) -> usize {
        let fresh = self.next;
        self.next += 1;
        self.told.push((text.to_owned(), fresh));
        out.ask_before(number_of("PREP"), |out| {
            out.extend_from_slice(format!("PREP {fresh} ").as_bytes());
            out.extend_from_slice(text);
            out.push(b'\n');
        });
        fresh
    }

    /// The number of a text that the server has taken; otherwise what becomes of its request.
    fn sure(&mut self, text: &[u8], out: &mut Outgoing<'_>) -> Result<usize, WriteResult> {
        if let Some(&number) = self.known.get(text) {
            return Ok(number);
        }
        if let Some(said) = self.failed.take() {
            out.answer().extend_from_slice(&said);
            return Err(WriteResult::Answered(Reply::new(
                Outcome::RemoteError,
                said.len(),
            )));
        }
        self.tell(text, out);
        Err(WriteResult::Waits)
    }
}

impl Lines {
    fn log_in(&self, lane: &mut Lane, with: &mut ServerLogin<'_>, bytes: &[u8], out: &mut Vec<u8>) -> Login {
        match (lane.step, line(bytes)) {
            (Step::Secured, _) => {
                lane.step = Step::LoggingIn;
                out.append(&mut lane.login);
                Login::More { used: 0 }
            }
            (_, Parsed::More) => Login::More { used: 0 },
            (Step::LoggingIn, Parsed::Head(line)) if line.starts_with("WELCOME version ") => {
                with.said = line["WELCOME version ".len()..].trim().as_bytes().to_vec();
                Login::Ready { used: line.len() }
            }
            (Step::LoggingIn, Parsed::Head(line)) if line.starts_with("WELCOME number ") => {
                lane.number = line["WELCOME number ".len()..].trim().parse().unwrap_or(0);
                Login::Ready { used: line.len() }
            }
            (Step::Greeting, Parsed::Head(line)) if line.starts_with("HELLO ") => {
                let answer = answer(line[6..].trim_end(), self.password);
                let user = match String::from_utf8_lossy(with.words) {
                    name if name.is_empty() => String::new(),
                    name => format!("@{name}"),
                };
                let login = format!("LOGIN proxy{user} {answer}\n").into_bytes();
                if self.is_late {
                    (lane.step, lane.login) = (Step::Securing, login);
                    out.extend_from_slice(b"SECURE\n");
                } else {
                    lane.step = Step::LoggingIn;
                    out.extend(login);
                }
                Login::More { used: line.len() }
            }
            (Step::Securing, Parsed::Head(line @ "GO\n")) => {
                lane.step = Step::Secured;
                Login::Upgrade { used: line.len() }
            }
            (Step::LoggingIn, Parsed::Head(line @ ("WELCOME\n" | "WELCOME terse\n"))) => {
                lane.is_terse = line.ends_with("terse\n");
                Login::Ready { used: line.len() }
            }
            (Step::LoggingIn, Parsed::Head(line @ "WELCOME old\n")) => Login::Limited {
                used: line.len(),
                why: "an old server takes no batches".into(),
            },
            (Step::LoggingIn, Parsed::Head("DENIED\n")) if !with.words.is_empty() => {
                Login::Denied(b"? the server denies it\n".to_vec())
            }
            (_, Parsed::Head(line)) => Login::Failed(format!("the server said {}", line.trim_end())),
            (_, Parsed::Bad(_)) => Login::Failed("the server said no line".into()),
        }
    }
}
