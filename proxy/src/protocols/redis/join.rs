//! Replies of several servers become one, as the table of commands says.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use proxima_wire::resp::{Combine, append_number, integer, whole};

use crate::protocol::{Assembly, Join, MALFORMED, Parts};

/// The way in which replies are joined by this rule.
pub(super) const fn of(combine: Combine) -> &'static Join {
    match combine {
        Combine::List => &Join::Parts(list::<1>),
        Combine::Pairs => &Join::Parts(list::<2>),
        Combine::Sum => &Join::Parts(sum),
        Combine::Ok | Combine::First => &Join::Parts(first),
        Combine::One => &Join::Parts(one),
        Combine::Concat => &Join::Parts(concat),
        Combine::Unite => &Join::Parts(unite),
        Combine::And => &Join::Parts(and),
        Combine::Any => &Join::Parts(any),
    }
}

/// Appends the first error, if there is one.
fn has_failed(parts: &Parts<'_>, out: &mut Assembly<'_>) -> bool {
    let error = (0..parts.count).find(|&part| (parts.reply)(part).1);
    error.inspect(|&part| out.whole(parts, part)).is_some()
}

/// Appends an error in place of what was appended: a server has answered something else.
pub(super) fn malformed(out: &mut Assembly<'_>) {
    out.restart();
    super::append_error(&format!("ERR {MALFORMED}"), out.own());
}

/// The number of elements of an array or a set, and the position of the first.
fn elements(reply: &[u8]) -> Option<(i64, usize)> {
    let end = reply.iter().position(|&byte| byte == b'\r')?;
    let is_list = matches!(reply.first(), Some(b'*' | b'~'));
    let count = integer(reply.get(1..end)?)?;
    is_list.then_some((count, end + 2))
}

/// The length of the element that begins at `at`; `None` if none begins there.
fn element(reply: &[u8], at: usize) -> Option<usize> {
    let rest = reply.get(at..)?;
    let length = whole(rest)?.len() as usize;
    (length <= rest.len()).then_some(length)
}

/// The elements of all arrays, in the order of the keys; each key has as many as `EACH` says.
fn list<const EACH: usize>(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if has_failed(parts, out) {
        return;
    }
    append_number(b'*', (parts.order.len() * EACH) as i64, out.own());
    for &part in parts.order {
        let part = part as usize;
        let reply = (parts.reply)(part).0;
        let Some(&cursor) = parts.cursors.get(part) else {
            return malformed(out);
        };
        let begin = match cursor {
            0 => elements(reply).map_or(reply.len(), |(_, first)| first),
            cursor => cursor,
        };
        let mut end = begin;
        for _ in 0..EACH {
            let Some(length) = element(reply, end) else {
                return malformed(out);
            };
            end += length;
        }
        out.excerpt(parts, part, begin..end);
        parts.cursors[part] = end;
    }
}

/// The number that a reply is.
fn number(reply: &[u8]) -> Option<i64> {
    integer(reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?)
}

fn sum(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if has_failed(parts, out) {
        return;
    }
    let mut numbers = (0..parts.count).map(|part| number((parts.reply)(part).0));
    let sum = numbers.try_fold(0_i64, |sum, number| Some(sum.saturating_add(number?)));
    match sum {
        Some(sum) => append_number(b':', sum, out.own()),
        None => malformed(out),
    }
}

fn first(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if !has_failed(parts, out) {
        out.whole(parts, 0);
    }
}

/// One of the replies that are not null. Chance chooses it, so that no server's are preferred.
fn one(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if has_failed(parts, out) {
        return;
    }
    let is_null = |part: usize| matches!((parts.reply)(part).0, b"$-1\r\n" | b"_\r\n");
    let found = || (0..parts.count).filter(|&part| !is_null(part));
    let chosen = match found().count() {
        0 => Some(0),
        count => found().nth((RandomState::new().hash_one(count) % count as u64) as usize),
    };
    out.whole(parts, chosen.unwrap_or_default());
}

/// The elements of all arrays, one array behind the other.
fn concat(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if has_failed(parts, out) {
        return;
    }
    let mut counts = (0..parts.count).map(|part| elements((parts.reply)(part).0));
    let count = counts.try_fold(0_i64, |sum, elements| Some(sum.saturating_add(elements?.0)));
    let Some(count) = count else {
        return malformed(out);
    };
    let kind = (parts.reply)(0).0.first().copied().unwrap_or(b'*');
    append_number(kind, count, out.own());
    for part in 0..parts.count {
        let reply = (parts.reply)(part).0;
        let first = elements(reply).map_or(0, |(_, first)| first);
        out.excerpt(parts, part, first..reply.len());
    }
}

/// The elements of all arrays, one array behind the other, without those that were there before.
fn unite(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if has_failed(parts, out) {
        return;
    }
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for part in 0..parts.count {
        let reply = (parts.reply)(part).0;
        let Some((_, mut at)) = elements(reply) else {
            return malformed(out);
        };
        while at < reply.len() {
            let Some(length) = element(reply, at) else {
                return malformed(out);
            };
            if seen.insert(&reply[at..at + length]) {
                found.push((part, at..at + length));
            }
            at += length;
        }
    }
    let kind = (parts.reply)(0).0.first().copied().unwrap_or(b'*');
    append_number(kind, found.len() as i64, out.own());
    drop(seen);
    for (part, range) in found {
        out.excerpt(parts, part, range);
    }
}

/// Arrays of numbers: the least of each position.
fn and(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    if has_failed(parts, out) {
        return;
    }
    let mut least: Vec<i64> = Vec::new();
    for part in 0..parts.count {
        let reply = (parts.reply)(part).0;
        let lines = reply.split_inclusive(|&byte| byte == b'\n').skip(1);
        let numbers: Option<Vec<i64>> = lines.map(number).collect();
        match numbers {
            Some(numbers) if part == 0 => least = numbers,
            Some(numbers) if numbers.len() == least.len() => {
                least
                    .iter_mut()
                    .zip(numbers)
                    .for_each(|(least, number)| *least = number.min(*least));
            }
            _ => return malformed(out),
        }
    }
    append_number(b'*', least.len() as i64, out.own());
    least
        .iter()
        .for_each(|&number| append_number(b':', number, out.own()));
}

/// A reply that is no error; if all are errors, the first.
fn any(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    let good = (0..parts.count).find(|&part| !(parts.reply)(part).1);
    out.whole(parts, good.unwrap_or(0));
}
