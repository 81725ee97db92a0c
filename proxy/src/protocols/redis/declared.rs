//! Commands that only the configuration knows: those of modules, and newer ones.

use proxima_wire::{
    message::{Class, Request, Span},
    resp::{Args, DECLARED, UNKNOWN},
};

use super::append_error;
use crate::protocol::{CommandDeclaration, DeclaredCommands, Plan};

/// Bytes up to which a request is held whole. The last word of a larger one is passed on as its body.
const WHOLE: usize = 64 * 1024;

/// The request as the configuration declares it; `None` if the codec knows its command, or if that is not
/// declared. A wrong number of words makes a request of [`Class::Session`].
pub(super) fn resolve(declared: &DeclaredCommands, request: &Request, message: &[u8]) -> Option<Request> {
    if request.command != UNKNOWN {
        return None;
    }
    let mut args = Args::of(message);
    let count = i64::from(args.left());
    let command = declared.get(&args.text()?.to_ascii_lowercase())?;
    let takes = match i64::from(command.arity) {
        arity if arity < 0 => count >= -arity,
        arity => count == arity,
    };
    let mut resolved = Request::new(DECLARED, Class::Session, message.len());
    if !takes {
        return Some(resolved);
    }
    resolved.class = command.class;
    if let Some((first, last, step)) = positions(command, count) {
        let mut keys = Args::of(message)
            .zip(0..)
            .filter(|&(_, at)| (first..=last).contains(&at) && (at - first) % step == 0)
            .map(|(key, _)| key);
        resolved.key = keys.next()?;
        if let Some(last) = keys.last() {
            resolved.more_keys = Span::new(resolved.key.end(), last.end());
        }
        resolved.key_step = step as u32;
    } else {
        resolved.class = Class::Admin;
    }
    if message.len() > WHOLE {
        let last = Args::of(message).last()?;
        let body = message.len() - last.start as usize;
        resolved.head -= body as u32;
        resolved.body = body as u64;
    }
    Some(resolved)
}

/// The positions of the first and the last key, and the step; `None` if the command has no keys.
fn positions(command: &CommandDeclaration, count: i64) -> Option<(i64, i64, i64)> {
    let [first, last, step] = command.keys.map(i64::from);
    let last = if last < 0 { count + last } else { last };
    (first > 0 && last >= first && last < count && step > 0).then_some((first, last, step))
}

/// Gives each key of a request that was resolved to `take`.
pub(super) fn each_key(request: &Request, message: &[u8], take: &mut dyn FnMut(Span)) {
    let last = request.key.end().max(request.more_keys.end());
    let keys = Args::of(message)
        .skip_while(|arg| arg.start < request.key.start)
        .take_while(|arg| arg.end() <= last)
        .step_by(request.key_step.max(1) as usize);
    keys.for_each(take);
}

/// Plans a request that was resolved, outside a transaction.
pub(super) fn plan(request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    match request.class {
        Class::Session => {
            reject(message, out);
            Plan::Answer
        }
        Class::Admin => {
            append_error("ERR a command without keys is not served by several servers", out);
            Plan::Alone
        }
        _ if !request.more_keys.is_empty() => Plan::Spread { is_divisible: false },
        _ => Plan::Route,
    }
}

/// Appends that the number of words is wrong.
pub(super) fn reject(message: &[u8], out: &mut Vec<u8>) {
    let name = Args::of(message).text().unwrap_or_default().to_ascii_lowercase();
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
    append_error(
        &format!("ERR wrong number of arguments for '{name}' command"),
        out,
    );
}

#[cfg(test)]
mod tests {
    use proxima_wire::{
        message::{Class, Request},
        resp::UNKNOWN,
    };

    use super::{each_key, resolve};
    use crate::protocol::{CommandDeclaration, DeclaredCommands};

    fn message(words: &str) -> Vec<u8> {
        let words: Vec<&str> = words.split(' ').collect();
        let mut out = format!("*{}\r\n", words.len());
        words
            .iter()
            .for_each(|word| out += &format!("${}\r\n{word}\r\n", word.len()));
        out.into_bytes()
    }

    #[test]
    fn keys_are_found_where_they_are_declared() {
        let class = Class::Write;
        let declared: DeclaredCommands = [
            (
                "json.set",
                CommandDeclaration {
                    arity: -4,
                    keys: [1, 1, 1],
                    class,
                },
            ),
            (
                "json.mset",
                CommandDeclaration {
                    arity: -4,
                    keys: [1, -1, 3],
                    class,
                },
            ),
            (
                "json.mget",
                CommandDeclaration {
                    arity: -3,
                    keys: [1, -2, 1],
                    class,
                },
            ),
            (
                "ft._list",
                CommandDeclaration {
                    arity: 1,
                    keys: [0, 0, 0],
                    class,
                },
            ),
        ]
        .into_iter()
        .map(|(name, command)| (name.as_bytes().to_vec(), command))
        .collect();
        for (words, expected) in [
            ("JSON.SET k $ 1", Some((Class::Write, "k"))),
            ("json.set k $", Some((Class::Session, ""))),
            ("json.mset a $ 1 b $ 2", Some((Class::Write, "a b"))),
            ("json.mget a b c $", Some((Class::Write, "a b c"))),
            ("ft._list", Some((Class::Admin, ""))),
            ("ft._list x", Some((Class::Session, ""))),
            ("ft.search i q", None),
        ] {
            let message = message(words);
            let request = Request::new(UNKNOWN, Class::Session, message.len());
            let found = resolve(&declared, &request, &message).map(|request| {
                let mut keys = Vec::new();
                if !request.key.is_empty() {
                    each_key(&request, &message, &mut |key| {
                        keys.push(String::from_utf8_lossy(key.of(&message)).into_owned());
                    });
                }
                (request.class, keys.join(" "))
            });
            let expected = expected.map(|(class, keys)| (class, keys.to_owned()));
            assert_eq!(found, expected, "{words}");
        }
    }
}
