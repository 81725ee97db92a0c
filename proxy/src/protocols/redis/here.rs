//! Commands that the proxy answers, as clients expect it.

use proxima_wire::{
    message::Span,
    resp::{Args, Command, Handling, append_number, each_key, find, glob, integer},
};

use super::{
    access, append_bulk, append_error, login, null,
    state::{self, LIBRARY, LIBRARY_VERSION, NAME},
};
use crate::protocol::{Plan, Retention, Session};

/// A server repeats no more bytes of an unknown command than this.
const REPEATED: usize = 128;
const NO_CLUSTER: &[u8] = b"-ERR This instance has cluster support disabled\r\n";
const OK: &[u8] = b"+OK\r\n";

/// Answers a name that no server knows, as servers do.
fn unknown(mut args: Args<'_>, out: &mut Vec<u8>) {
    let shown = |text: &[u8], most: usize| {
        let cut = &text[..text.len().min(most)];
        String::from_utf8_lossy(cut).into_owned()
    };
    let name = shown(args.text().unwrap_or_default(), REPEATED);
    let mut rest = String::new();
    while rest.len() < REPEATED
        && let Some(text) = args.text()
    {
        rest += &format!("'{}' ", shown(text, REPEATED - rest.len()));
    }
    append_error(
        &format!("ERR unknown command '{name}', with args beginning with: {rest}"),
        out,
    );
}

/// Answers a subcommand that no server knows.
fn unknown_subcommand(command: &Command, sub: Option<Span>, message: &[u8], out: &mut Vec<u8>) {
    let sub = sub.map(|sub| sub.of(message)).unwrap_or_default();
    let sub = String::from_utf8_lossy(&sub[..sub.len().min(REPEATED)]);
    let container = command.name.to_uppercase();
    append_error(
        &format!("ERR unknown subcommand '{sub}'. Try {container} HELP."),
        out,
    );
}

/// Answers an unknown name, or a number of arguments that no server takes.
pub(super) fn reject_form(number: u16, args: &mut Args<'_>, message: &[u8], out: &mut Vec<u8>) {
    let count = args.left();
    match Command::of(number) {
        None => unknown(args.clone(), out),
        Some(command) if command.served == Handling::Container && count > 1 => {
            unknown_subcommand(command, args.nth(1), message, out);
        }
        Some(command) => append_error(
            &format!("ERR wrong number of arguments for '{}' command", command.name),
            out,
        ),
    }
}

/// Appends the head of a map, which in RESP2 is an array of twice as many elements.
fn append_map(form: u16, pairs: i64, out: &mut Vec<u8>) {
    match form {
        0 => append_number(b'*', pairs * 2, out),
        _ => append_number(b'%', pairs, out),
    }
}

/// Appends a text for people, which RESP3 has a type for.
pub(super) fn append_text(form: u16, text: &str, out: &mut Vec<u8>) {
    if form == 0 {
        return append_bulk(text.as_bytes(), out);
    }
    append_number(b'=', text.len() as i64 + 4, out);
    out.extend_from_slice(b"txt:");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Answers a command of [`Handling::Here`], whose number of arguments is right.
pub(super) fn answer(session: &mut Session, command: &Command, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let mut args = Args::of(message);
    let count = args.left();
    args.next();
    let first = args.text();
    let second = args.text();
    match command.name {
        "ping" if count > 2 => append_error("ERR wrong number of arguments for 'ping' command", out),
        "ping" => match first {
            Some(text) => append_bulk(text, out),
            None => out.extend_from_slice(b"+PONG\r\n"),
        },
        "echo" => append_bulk(first.unwrap_or_default(), out),
        "hello" => return hello(session, message, out),
        "auth" => return access::auth(session, message, out),
        "select" => return access::select(session, first.unwrap_or_default(), out),
        "quit" => {
            out.extend_from_slice(OK);
            return Plan::Close;
        }
        "reset" => {
            reset(session);
            out.extend_from_slice(b"+RESET\r\n");
        }
        "readonly" | "readwrite" | "asking" => out.extend_from_slice(NO_CLUSTER),
        name if name.starts_with("cluster|") => out.extend_from_slice(NO_CLUSTER),
        name => match name.split_once('|') {
            Some(("client", "info" | "list")) => return Plan::Connection,
            Some(("client", sub)) => client(session, sub, second, args.text(), out),
            Some((_, "list")) => return list(session, message, out),
            Some((_, sub)) => about_commands(session, sub, message, out),
            None => all_commands(out),
        },
    }
    Plan::Answer
}

/// Forgets the client's own settings.
pub(super) fn reset(session: &mut Session) {
    session.state.clear();
    session.login.clear();
    session.form = 0;
    session.has_subscriptions = false;
    session.plans_all = false;
    access::begin(session);
    if session.retention == Retention::Kept {
        session.retention = Retention::Spoilt;
    }
}

/// `HELLO [2|3 [AUTH user password] [SETNAME name]]`.
fn hello(session: &mut Session, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let mut args = Args::of(message);
    args.next();
    let form = match args.text().map(integer) {
        None => session.form,
        Some(Some(2)) => 0,
        Some(Some(3)) => 1,
        Some(Some(_)) => {
            append_error("NOPROTO unsupported protocol version", out);
            return Plan::Answer;
        }
        Some(None) => {
            append_error("ERR Protocol version is not an integer or out of range", out);
            return Plan::Answer;
        }
    };
    let (mut name, mut said) = (None, None);
    while let Some(option) = args.text() {
        match (option.to_ascii_lowercase().as_slice(), args.left()) {
            (b"auth", 2..) => said = args.text().zip(args.text()),
            (b"setname", 1..) => name = args.text(),
            _ => {
                let option = String::from_utf8_lossy(option);
                append_error(&format!("ERR Syntax error in HELLO option '{option}'"), out);
                return Plan::Answer;
            }
        }
    }
    if name.is_some_and(|name| !is_name(name)) {
        append_error(BAD_NAME, out);
        return Plan::Answer;
    }
    if let Some(plan) = access::hello(session, form, said, out) {
        return plan;
    }
    if let Some(name) = name {
        state::set_note(session, NAME, name);
    }
    let (server, version) = login::server(session.reach.version);
    append_map(form, 7, out);
    for (field, value) in [("server", server), ("version", &*version)] {
        append_bulk(field.as_bytes(), out);
        append_bulk(value.as_bytes(), out);
    }
    append_bulk(b"proto", out);
    append_number(b':', i64::from(form) + 2, out);
    append_bulk(b"id", out);
    append_number(b':', session.id as i64, out);
    for (field, value) in [("mode", "standalone"), ("role", "master")] {
        append_bulk(field.as_bytes(), out);
        append_bulk(value.as_bytes(), out);
    }
    append_bulk(b"modules", out);
    append_number(b'*', 0, out);
    Plan::Answer
}

const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// May a client be called this?
fn is_name(name: &[u8]) -> bool {
    name.iter().all(|byte| matches!(byte, b'!'..=b'~'))
}

/// Answers a subcommand of `CLIENT`.
fn client(session: &mut Session, sub: &str, first: Option<&[u8]>, second: Option<&[u8]>, out: &mut Vec<u8>) {
    let first = first.unwrap_or_default();
    match sub {
        "setname" => {
            if is_name(first) {
                state::set_note(session, NAME, first);
                out.extend_from_slice(OK);
            } else {
                append_error(BAD_NAME, out);
            }
        }
        "getname" => match state::note(session, NAME) {
            b"" => out.extend_from_slice(null(session.form)),
            name => append_bulk(name, out),
        },
        "setinfo" => {
            let part = match first.to_ascii_lowercase().as_slice() {
                b"lib-name" => LIBRARY,
                b"lib-ver" => LIBRARY_VERSION,
                _ => {
                    let option = String::from_utf8_lossy(first);
                    return append_error(&format!("ERR Unrecognized option '{option}'"), out);
                }
            };
            let text = second.unwrap_or_default();
            if is_name(text) {
                session.has_named_library |= part == LIBRARY && !text.is_empty();
                state::set_note(session, part, text);
                out.extend_from_slice(OK);
            } else {
                let option = String::from_utf8_lossy(first);
                append_error(
                    &format!("ERR {option} cannot contain spaces, newlines or special characters."),
                    out,
                );
            }
        }
        "id" => append_number(b':', session.id as i64, out),
        // A server that keeps a connection for the client answers these itself.
        "getredir" => append_number(b':', -1, out),
        "trackinginfo" => {
            append_map(session.form, 3, out);
            append_bulk(b"flags", out);
            append_number(if session.form == 0 { b'*' } else { b'~' }, 1, out);
            append_bulk(b"off", out);
            append_bulk(b"redirect", out);
            append_number(b':', -1, out);
            append_bulk(b"prefixes", out);
            append_number(b'*', 0, out);
        }
        "reply" if first.eq_ignore_ascii_case(b"on") => out.extend_from_slice(OK),
        "reply"
            if [&b"off"[..], b"skip"]
                .iter()
                .any(|word| first.eq_ignore_ascii_case(word)) =>
        {
            append_error(
                "ERR CLIENT REPLY OFF is not served: the proxy counts replies: read and drop them",
                out,
            );
        }
        // NO-EVICT is about the memory of a connection to a server, which no client has for itself.
        _ if [&b"on"[..], b"off"]
            .iter()
            .any(|word| first.eq_ignore_ascii_case(word)) =>
        {
            out.extend_from_slice(OK);
        }
        _ => out.extend_from_slice(access::SYNTAX),
    }
}

/// Does this turn off a feature that is off in every session without a connection of its own?
pub(super) fn is_off(command: &Command, message: &[u8]) -> bool {
    let mut args = Args::of(message);
    matches!(command.name, "client|tracking" | "client|no-touch")
        && args.left() == 3
        && args
            .nth(2)
            .is_some_and(|arg| arg.of(message).eq_ignore_ascii_case(b"off"))
}

/// Answers `COMMAND`.
fn all_commands(out: &mut Vec<u8>) {
    let top = || {
        (0..Command::COUNT)
            .filter_map(Command::of)
            .filter(|command| !command.name.contains('|'))
    };
    append_number(b'*', top().count() as i64, out);
    top().for_each(|command| append_command(command, out));
}

/// Appends a command as `COMMAND INFO` tells it. Categories and tips are the servers' own.
fn append_command(command: &Command, out: &mut Vec<u8>) {
    append_number(b'*', 10, out);
    append_bulk(command.name.as_bytes(), out);
    append_number(b':', i64::from(command.arity), out);
    append_number(b'*', command.flags.len() as i64, out);
    for flag in command.flags {
        out.push(b'+');
        out.extend_from_slice(flag.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    for position in command.positions {
        append_number(b':', i64::from(position), out);
    }
    out.extend_from_slice(b"*0\r\n*0\r\n*0\r\n");
    append_number(b'*', command.subcommands().len() as i64, out);
    command
        .subcommands()
        .filter_map(Command::of)
        .for_each(|sub| append_command(sub, out));
}

/// Answers `COMMAND LIST [FILTERBY MODULE|ACLCAT|PATTERN word]`. Which categories a command has, a server
/// says.
fn list(session: &Session, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let words: Vec<_> = Args::of(message).skip(2).map(|arg| arg.of(message)).collect();
    // Names are matched in any case.
    let filter = match words[..] {
        [] => None,
        [by, kind, word] if by.eq_ignore_ascii_case(b"filterby") => {
            Some((kind.to_ascii_lowercase(), word.to_ascii_lowercase()))
        }
        _ => {
            out.extend_from_slice(access::SYNTAX);
            return Plan::Answer;
        }
    };
    let is_listed = |command: &&Command| match &filter {
        None => true,
        Some((kind, word)) => kind == b"pattern" && glob::matches(word, command.name.as_bytes()),
    };
    match filter.as_ref().map_or(&b"pattern"[..], |(kind, _)| kind) {
        b"pattern" | b"module" => {}
        b"aclcat" if session.is_embedded => {}
        b"aclcat" => return Plan::Route,
        _ => {
            out.extend_from_slice(access::SYNTAX);
            return Plan::Answer;
        }
    }
    let listed = || (0..Command::COUNT).filter_map(Command::of).filter(is_listed);
    append_number(b'*', listed().count() as i64, out);
    listed().for_each(|command| append_bulk(command.name.as_bytes(), out));
    Plan::Answer
}

/// Answers another subcommand of `COMMAND`.
fn about_commands(session: &Session, sub: &str, message: &[u8], out: &mut Vec<u8>) {
    let top = || {
        (0..Command::COUNT)
            .filter_map(Command::of)
            .filter(|command| !command.name.contains('|'))
    };
    let mut args = Args::of(message).skip(2).map(|arg| arg.of(message));
    match sub {
        "count" => append_number(b':', top().count() as i64, out),
        "getkeys" => keys(message, out),
        _ => {
            let names: Vec<_> = args.by_ref().collect();
            if names.is_empty() {
                return all_commands(out);
            }
            append_number(b'*', names.len() as i64, out);
            for name in names {
                let found = match name.iter().position(|&byte| byte == b'|') {
                    None => Command::find(name),
                    Some(bar) => Command::find(&name[..bar])
                        .and_then(Command::of)
                        .and_then(|container| container.find_sub(&name[bar + 1..])),
                };
                match found.and_then(Command::of) {
                    Some(command) => append_command(command, out),
                    None => out.extend_from_slice(null(session.form)),
                }
            }
        }
    }
}

/// Answers `COMMAND GETKEYS`.
fn keys(message: &[u8], out: &mut Vec<u8>) {
    let words: Vec<_> = Args::of(message).skip(2).map(|arg| arg.of(message)).collect();
    let mut asked = Vec::new();
    append_number(b'*', words.len() as i64, &mut asked);
    words.iter().for_each(|word| append_bulk(word, &mut asked));
    let (number, count) = find(&asked);
    let Some(command) = Command::of(number) else {
        return append_error("ERR Invalid command specified", out);
    };
    if !command.takes(count) {
        return append_error("ERR Invalid number of arguments specified for command", out);
    }
    let mut found = Vec::new();
    each_key(command, &asked, false, &mut |key| found.push(key));
    if found.is_empty() {
        return append_error("ERR The command has no key arguments", out);
    }
    append_number(b'*', found.len() as i64, out);
    found.iter().for_each(|key| append_bulk(key.of(&asked), out));
}

/// Appends the answer to a request that several members would each answer for themselves.
pub(super) fn instead_of_one(session: &Session, command: &Command, message: &[u8], out: &mut Vec<u8>) {
    match command.name {
        "config|get" => {
            let known = [("databases", "1"), ("save", ""), ("appendonly", "no")];
            let asked: Vec<_> = Args::of(message).skip(2).map(|arg| arg.of(message)).collect();
            let is_asked = |name: &str| {
                asked
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(name.as_bytes()))
            };
            let found: Vec<_> = known.iter().filter(|(name, _)| is_asked(name)).collect();
            append_map(session.form, found.len() as i64, out);
            for (name, value) in found {
                append_bulk(name.as_bytes(), out);
                append_bulk(value.as_bytes(), out);
            }
        }
        name => append_error(
            &format!(
                "ERR {} is not served by several servers: {}",
                name.replace('|', " ").to_uppercase(),
                command.reason
            ),
            out,
        ),
    }
}
