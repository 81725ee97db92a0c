//! How the oldest and the newest memcached that Proxima serves read each line of `captures/differ.tsv`,
//! compared with the codec. On a connection that many clients share, everything depends on two rules:
//!
//! * both servers read a line that the codec accepts as the same bytes, and answer it once, in the form in
//!   which it is sent to them;
//! * a line that the codec refuses is answered, and swallows the bytes behind it, as by the newest server.

use std::collections::HashMap;
use std::path::Path;

use crate::capture::decode;
use crate::rows::each_row;
use proxima_wire::memcache::{
    Command, Limits, Rewrite, is_reply_whole, keys, reply, request, rewrite, silenced, single,
};
use proxima_wire::message::{Bad, Outcome, Parsed, Request};

/// The commands that followed each line.
const TAIL: &[u8] = b"mn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\n";

/// How one server read a line.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    /// It took this many bytes behind the line, and gave this answer.
    Took(u64, Vec<u8>),
    /// It took a number of bytes that cut a command behind the line in two, and gave this answer.
    Odd(Vec<u8>),
    Closed,
    Waits,
}

impl Verdict {
    fn read(text: &str) -> Self {
        match text.split_once(' ').unwrap_or((text, "")) {
            ("closed", _) => Self::Closed,
            ("waits", _) => Self::Waits,
            ("?", reply) => Self::Odd(decode(reply)),
            (taken, reply) => Self::Took(taken.parse().unwrap(), decode(reply)),
        }
    }
}

#[derive(Debug)]
struct Record {
    line: Vec<u8>,
    older: Verdict,
    newer: Verdict,
}

fn corpus() -> Vec<Record> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/differ.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let records: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [line, older, newer] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let older = Verdict::read(older);
            let newer = if newer == "=" {
                older.clone()
            } else {
                Verdict::read(newer)
            };
            Record {
                line: decode(line),
                older,
                newer,
            }
        })
        .collect();
    assert!(records.len() > 2000, "{} lines", records.len());
    records
}

fn parse(line: &[u8]) -> Parsed<Request> {
    request(
        &[line, TAIL].concat(),
        &Limits {
            value: 1 << 20,
            ..Limits::default()
        },
    )
}

/// The heads that are sent to servers for this request.
fn spoken(request: &Request, line: &[u8]) -> Vec<Vec<u8>> {
    if request.more_keys.is_empty() {
        let mut head = Vec::new();
        assert!(rewrite(request, line, &Rewrite::default(), &mut head));
        return vec![head];
    }
    keys(request, line)
        .map(|key| {
            let mut head = Vec::new();
            single(request, line, key.of(line), &mut head);
            head
        })
        .collect()
}

/// Whether the proxy answers this command itself, so that no server is sent it.
fn stays_here(command: Command) -> bool {
    matches!(
        command,
        Command::Version
            | Command::Verbosity
            | Command::MetaNoop
            | Command::Quit
            | Command::Stats
            | Command::Config
            | Command::Shutdown
    )
}

/// The outcome of these bytes if they are exactly one reply to `command`.
fn one_reply(command: Command, bytes: &[u8]) -> Option<Outcome> {
    let Parsed::Head(reply) = reply(command, bytes) else {
        return None;
    };
    (reply.len() == bytes.len() as u64 && is_reply_whole(&reply, bytes)).then_some(reply.outcome)
}

#[test]
fn an_accepted_line_has_the_same_bytes_and_one_reply_at_every_server() {
    let corpus = corpus();
    let by_line: HashMap<_, _> = corpus.iter().map(|record| (&record.line[..], record)).collect();
    let mut wrong = Vec::new();
    let mut sent = 0;
    for Record { line, .. } in &corpus {
        let Parsed::Head(request) = parse(line) else {
            continue;
        };
        let command = Command::from_number(request.command).unwrap();
        if stays_here(command) {
            continue;
        }
        let text = line.escape_ascii();
        if request.head as usize != line.len() {
            wrong.push(format!("{text}: its head has {} bytes", request.head));
            continue;
        }
        for head in spoken(&request, line) {
            let Some(record) = by_line.get(&head[..]) else {
                wrong.push(format!("{text}: {} was not recorded", head.escape_ascii()));
                continue;
            };
            sent += 1;
            let mut errors = Vec::new();
            for verdict in [&record.older, &record.newer] {
                match verdict {
                    Verdict::Took(taken, reply) if *taken == request.body => {
                        match one_reply(command, reply) {
                            Some(outcome) => errors.push(outcome.is_error()),
                            None => wrong.push(format!("{text}: {} is not one reply", reply.escape_ascii())),
                        }
                    }
                    // The value in the captures does not end as the line says. The line itself is good.
                    Verdict::Odd(reply) if request.body == 2 || request.body == 3 => {
                        let bad = b"CLIENT_ERROR bad data chunk\r\n";
                        assert!(reply.starts_with(bad), "{text}: {}", reply.escape_ascii());
                    }
                    other => wrong.push(format!("{text}: {} bytes here, {other:?}", request.body)),
                }
            }
            if errors.first() != errors.last() && !has_newer_flag(line) {
                wrong.push(format!("{text}: {:?} and {:?}", record.older, record.newer));
            }
        }
    }
    assert!(sent > 1000, "{sent} lines were judged");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_refused_line_is_answered_and_swallowed_as_by_the_newest_server() {
    let mut wrong = Vec::new();
    for Record { line, newer, .. } in corpus() {
        let Parsed::Bad(bad) = parse(&line) else { continue };
        let Bad {
            reply,
            head,
            swallow,
            close,
            ..
        } = bad;
        let text = line.escape_ascii();
        if !close && head as usize != line.len() {
            wrong.push(format!("{text}: its head has {head} bytes"));
        }
        let same = match &newer {
            Verdict::Closed => close || is_stricter(&line),
            Verdict::Waits => swallow > TAIL.len() as u64,
            // A server answers the rest of a command of TAIL with an error.
            Verdict::Took(..) | Verdict::Odd(_) if swallow % 4 != 0 => !close,
            Verdict::Took(taken, theirs) => {
                // memcached answers a `get` of a key that is too long with one more empty line, which no
                // client needs.
                let theirs = theirs
                    .strip_suffix(b"\r\n\r\n")
                    .map_or(theirs.clone(), |line| [line, b"\r\n"].concat());
                // The codec refuses what only the newest server accepts, and swallows its value.
                let refuses = theirs.starts_with(b"CLIENT_ERROR") || theirs.starts_with(b"ERROR");
                *taken == swallow && (!refuses || theirs == reply || is_stricter(&line)) && !close
            }
            Verdict::Odd(_) => false,
        };
        if !same {
            wrong.push(format!(
                "{text}: {} and {swallow} bytes, but {newer:?}",
                reply.escape_ascii()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether this line has a flag that only newer servers know.
fn has_newer_flag(line: &[u8]) -> bool {
    line.starts_with(b"m")
        && line
            .split(|&byte| byte == b' ')
            .any(|word| matches!(word.first(), Some(b'E' | b'x')))
}

/// Whether this line has something that only the codec refuses, so that the newest server names another
/// fault.
fn is_stricter(line: &[u8]) -> bool {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let has_minus = text
        .split(|&byte| byte == b' ')
        .any(|word| matches!(word, b"T-" | b"N-" | b"R-"));
    has_minus || text.contains(&b'\r') || text.contains(&0)
}

#[test]
fn a_quiet_line_silences_the_replies_that_servers_suppress() {
    each_row(corpus(), |Record { line, older, newer }| {
        let Parsed::Head(request) = parse(line) else {
            return;
        };
        let command = Command::from_number(request.command).unwrap();
        if !request.is_quiet || stays_here(command) || matches!(request.body, 2 | 3) {
            return;
        }
        for verdict in [older, newer] {
            let Verdict::Took(_, theirs) = verdict else {
                continue;
            };
            let Some(outcome) = one_reply(command, theirs) else {
                assert!(theirs.is_empty(), "{}", line.escape_ascii());
                continue;
            };
            // Some servers answer a quiet `ma` that makes its item, and the reply does not say that it did.
            let made = command == Command::MetaArithmetic && outcome == Outcome::Found;
            assert!(
                made || !silenced(command, outcome),
                "{}: {}",
                line.escape_ascii(),
                theirs.escape_ascii()
            );
        }
    });
}
