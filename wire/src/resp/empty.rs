//! The answers of an empty server, from `commands/empty.tsv`: the replies where a route ends without a
//! server.

use std::collections::HashSet;

use super::{
    Args, Command,
    answer::{Answer, ArgumentTest},
    append_number, each_key,
    error::{NO_FLOAT, NO_INTEGER},
    integer, transaction,
};

/// Appends what an empty server answers to this request, whose number of arguments is right. Returns false,
/// and appends nothing, if only a server can say.
pub fn append_empty(command: &Command, form: u16, message: &[u8], out: &mut Vec<u8>) -> bool {
    let args: Vec<&[u8]> = Args::of(message).map(|arg| arg.of(message)).collect();
    let holds = |when: &ArgumentTest| match *when {
        ArgumentTest::Word(word, from) => args.iter().skip(from).any(|arg| is(arg, word)),
        ArgumentTest::Is(at, word) => args.get(at).is_some_and(|arg| is(arg, word)),
        ArgumentTest::Words(count) => args.len() >= count,
    };
    let case = command.empty.iter().find(|case| case.when.iter().all(holds));
    case.is_some_and(|case| case.answer.append(command, form, (message, &args), out))
}

/// Appends the replies to a transaction that has come whole.
pub fn append_empty_transaction(form: u16, message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
    let count = transaction::commands(message).count();
    (0..count).for_each(|_| out.extend_from_slice(b"+QUEUED\r\n"));
    append_number(b'*', count as i64, out);
    for (_, inner) in transaction::commands(message) {
        let command = Command::of(super::find(inner).0);
        if !command.is_some_and(|command| append_empty(command, form, inner, out)) {
            let name = command.map_or("this", |command| command.name);
            append_error(&format!("ERR {}", only_a_server(name)), out);
        }
    }
}

/// The text of the error for a command to which only a server can say something.
pub fn only_a_server(command: &str) -> String {
    let name = command.replace('|', " ").to_uppercase();
    format!("{name} is answered by servers alone, and this route leads it to none: lead it to a pool")
}

fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

fn number(arg: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(arg).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

fn append_bulk(text: &[u8], out: &mut Vec<u8>) {
    append_number(b'$', text.len() as i64, out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn append_error(text: &str, out: &mut Vec<u8>) {
    let printable = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
    out.push(b'-');
    out.extend(text.bytes().map(printable));
    out.extend_from_slice(b"\r\n");
}

impl Answer {
    fn append(
        &self,
        command: &Command,
        form: u16,
        (message, args): (&[u8], &[&[u8]]),
        out: &mut Vec<u8>,
    ) -> bool {
        let arg = |at: usize| args.get(at).copied().unwrap_or_default();
        let from = |at: usize| args.get(at..).unwrap_or_default();
        let of_form = |two: &'static str, three| if form == 0 { two } else { three };
        let mut append_integer = |number: Option<i64>| match number {
            Some(number) => append_number(b':', number, out),
            None => out.extend_from_slice(NO_INTEGER),
        };
        match *self {
            Self::Bytes(two, three) => out.extend_from_slice(of_form(two, three).as_bytes()),
            Self::Error(text) => {
                let mut keys = Vec::new();
                each_key(command, message, false, &mut |key| keys.push(key));
                let key = keys.first().map(|key| key.of(message)).unwrap_or_default();
                append_error(&filled(text, key, args), out);
            }
            Self::Each(at, two, three) => {
                append_number(b'*', from(at).len() as i64, out);
                let element = of_form(two, three).as_bytes();
                from(at).iter().for_each(|_| out.extend_from_slice(element));
            }
            Self::Zeros(at) => {
                append_number(b'*', from(at).len() as i64 * 2, out);
                for name in from(at) {
                    append_bulk(name, out);
                    append_number(b':', 0, out);
                }
            }
            // The last of them may still be to come.
            Self::Count(at) => append_integer(Some(i64::from(Args::of(message).left()) - at as i64)),
            Self::Distinct(at, step) => append_integer(Some(distinct(from(at).iter().step_by(step)))),
            Self::Members(step) => {
                let first = args.iter().skip(2).position(|arg| number(arg).is_some());
                let members = first.map_or(&[][..], |first| from(first + 2));
                append_integer(Some(distinct(members.iter().skip(step - 1).step_by(step))));
            }
            Self::Integer(at) => append_integer(integer(arg(at))),
            Self::Minus(at) => append_integer(integer(arg(at)).and_then(i64::checked_neg)),
            Self::Length(at) => append_integer(Args::length(message, at)),
            Self::End(at) => {
                let len = Args::length(message, at + 1).unwrap_or_default();
                let end = integer(arg(at)).and_then(|offset| offset.checked_add(len));
                append_integer(if len == 0 { Some(0) } else { end });
            }
            Self::Float(at) => append_float(b'$', number(arg(at)), out),
            Self::Double(at) => append_float(if form == 0 { b'$' } else { b',' }, number(arg(at)), out),
            Self::Score => {
                let score = args.iter().skip(2).find_map(|arg| number(arg));
                append_float(if form == 0 { b'$' } else { b',' }, score, out);
            }
            Self::Echo(at) => append_bulk(arg(at), out),
            Self::Fields => append_fields(from(2), out),
            Self::Server => return false,
        }
        true
    }
}

/// The text with arguments in place of `{N}` and `{key}`.
fn filled(text: &str, key: &[u8], args: &[&[u8]]) -> String {
    let mut parts = text.split(['{', '}']);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    while let Some(name) = parts.next() {
        let arg = match name.parse() {
            Ok(at) => args.get::<usize>(at).copied().unwrap_or_default(),
            Err(_) => key,
        };
        filled += &String::from_utf8_lossy(arg);
        filled += parts.next().unwrap_or_default();
    }
    filled
}

fn distinct<'a>(args: impl Iterator<Item = &'a &'a [u8]>) -> i64 {
    args.collect::<HashSet<_>>().len() as i64
}

/// Appends a number as a string or as a double.
fn append_float(kind: u8, number: Option<f64>, out: &mut Vec<u8>) {
    let Some(number) = number else {
        return out.extend_from_slice(NO_FLOAT);
    };
    let text = number.to_string();
    if kind == b'$' {
        return append_bulk(text.as_bytes(), out);
    }
    out.push(kind);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends what the operations of `BITFIELD` find: nothing but zeros, and what they add.
fn append_fields(mut args: &[&[u8]], out: &mut Vec<u8>) {
    let mut found = Vec::new();
    while let Some((name, rest)) = args.split_first() {
        // Type and offset, and the value of a change; or the word behind OVERFLOW.
        let words = match () {
            () if is(name, "GET") => 2,
            () if is(name, "OVERFLOW") => 1,
            () => 3,
        };
        if words > 1 {
            let added = rest.get(2).filter(|_| is(name, "INCRBY"));
            found.push(added.and_then(|added| integer(added)).unwrap_or(0));
        }
        args = rest.get(words..).unwrap_or_default();
    }
    append_number(b'*', found.len() as i64, out);
    found.iter().for_each(|&number| append_number(b':', number, out));
}
