//! Replies of several servers become one, as the table of commands says.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use proxima_wire::resp::{Combine, append_number, integer, whole};

use crate::dialect::{Join, MALFORMED, Shares};

/// How replies are joined by this rule.
pub(super) const fn of(combine: Combine) -> &'static Join {
    match combine {
        Combine::List => &Join::Shares(list::<1>),
        Combine::Pairs => &Join::Shares(list::<2>),
        Combine::Sum => &Join::Shares(sum),
        Combine::Ok | Combine::First => &Join::Shares(first),
        Combine::One => &Join::Shares(one),
        Combine::Concat => &Join::Shares(concat),
        Combine::Unite => &Join::Shares(unite),
        Combine::And => &Join::Shares(and),
        Combine::Any => &Join::Shares(any),
    }
}

/// Appends the first error, if there is one.
fn has_failed(shares: &Shares<'_>, out: &mut Vec<u8>) -> bool {
    let replies = (0..shares.count).map(|share| (shares.reply)(share));
    let error = replies
        .filter(|(_, is_error)| *is_error)
        .map(|(bytes, _)| bytes)
        .next();
    error.is_some_and(|error| {
        out.extend_from_slice(error);
        true
    })
}

/// Appends an error in place of what was appended since `begin`: a server has answered something else.
pub(super) fn malformed(begin: usize, out: &mut Vec<u8>) {
    out.truncate(begin);
    super::append_error(&format!("ERR {MALFORMED}"), out);
}

/// The number of elements of an array or a set, and the position of the first.
fn elements(reply: &[u8]) -> Option<(i64, usize)> {
    let end = reply.iter().position(|&byte| byte == b'\r')?;
    let is_list = matches!(reply.first(), Some(b'*' | b'~'));
    let count = integer(reply.get(1..end)?)?;
    is_list.then_some((count, end + 2))
}

/// The elements of all arrays, in the order of the keys; each key has as many as `EACH` says.
fn list<const EACH: usize>(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if has_failed(shares, out) {
        return;
    }
    let begin = out.len();
    // The replies are there until all of the joined one is: it does not take more than they do.
    out.reserve((0..shares.count).map(|share| (shares.reply)(share).0.len()).sum());
    append_number(b'*', (shares.order.len() * EACH) as i64, out);
    for &share in shares.order {
        let share = usize::from(share);
        let reply = (shares.reply)(share).0;
        let Some(cursor) = shares.cursors.get_mut(share) else {
            return malformed(begin, out);
        };
        if *cursor == 0 {
            *cursor = elements(reply).map_or(reply.len(), |(_, first)| first);
        }
        for _ in 0..EACH {
            let rest = reply.get(*cursor..).unwrap_or_default();
            let Some(element) = whole(rest).and_then(|element| rest.get(..element.len() as usize)) else {
                return malformed(begin, out);
            };
            out.extend_from_slice(element);
            *cursor += element.len();
        }
    }
}

/// The number that a reply is.
fn number(reply: &[u8]) -> Option<i64> {
    integer(reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?)
}

fn sum(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if has_failed(shares, out) {
        return;
    }
    let mut numbers = (0..shares.count).map(|share| number((shares.reply)(share).0));
    let sum = numbers.try_fold(0_i64, |sum, number| Some(sum.saturating_add(number?)));
    match sum {
        Some(sum) => append_number(b':', sum, out),
        None => malformed(out.len(), out),
    }
}

fn first(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if !has_failed(shares, out) {
        out.extend_from_slice((shares.reply)(0).0);
    }
}

/// One of the replies that are not null. Chance chooses it, so that no server's are preferred.
fn one(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if has_failed(shares, out) {
        return;
    }
    let replies = || (0..shares.count).map(|share| (shares.reply)(share).0);
    let found = || replies().filter(|reply| !matches!(*reply, b"$-1\r\n" | b"_\r\n"));
    let chosen = match found().count() {
        0 => replies().next(),
        count => found().nth((RandomState::new().hash_one(count) % count as u64) as usize),
    };
    out.extend_from_slice(chosen.unwrap_or_default());
}

/// The elements of all arrays, one array behind the other.
fn concat(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if has_failed(shares, out) {
        return;
    }
    let begin = out.len();
    let mut counts = (0..shares.count).map(|share| elements((shares.reply)(share).0));
    let count = counts.try_fold(0_i64, |sum, elements| Some(sum.saturating_add(elements?.0)));
    let Some(count) = count else {
        return malformed(begin, out);
    };
    let kind = (shares.reply)(0).0.first().copied().unwrap_or(b'*');
    append_number(kind, count, out);
    for share in 0..shares.count {
        let reply = (shares.reply)(share).0;
        let first = elements(reply).map_or(0, |(_, first)| first);
        out.extend_from_slice(reply.get(first..).unwrap_or_default());
    }
}

/// The elements of all arrays, one array behind the other, without those that were there before.
fn unite(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if has_failed(shares, out) {
        return;
    }
    let begin = out.len();
    let mut seen = HashSet::new();
    for share in 0..shares.count {
        let reply = (shares.reply)(share).0;
        let Some((_, first)) = elements(reply) else {
            return malformed(begin, out);
        };
        let mut rest = reply.get(first..).unwrap_or_default();
        while !rest.is_empty() {
            let element = whole(rest).and_then(|element| rest.split_at_checked(element.len() as usize));
            let Some((element, behind)) = element else {
                return malformed(begin, out);
            };
            if seen.insert(element) {
                out.extend_from_slice(element);
            }
            rest = behind;
        }
    }
    // The number of elements is known only behind them. It is then moved to the front.
    let end = out.len();
    let kind = (shares.reply)(0).0.first().copied().unwrap_or(b'*');
    append_number(kind, seen.len() as i64, out);
    let head = out.len() - end;
    out[begin..].rotate_right(head);
}

/// Arrays of numbers: the least of each position.
fn and(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    if has_failed(shares, out) {
        return;
    }
    let begin = out.len();
    let mut least: Vec<i64> = Vec::new();
    for share in 0..shares.count {
        let reply = (shares.reply)(share).0;
        let lines = reply.split_inclusive(|&byte| byte == b'\n').skip(1);
        let numbers: Option<Vec<i64>> = lines.map(number).collect();
        match numbers {
            Some(numbers) if share == 0 => least = numbers,
            Some(numbers) if numbers.len() == least.len() => {
                least
                    .iter_mut()
                    .zip(numbers)
                    .for_each(|(least, number)| *least = number.min(*least));
            }
            _ => return malformed(begin, out),
        }
    }
    append_number(b'*', least.len() as i64, out);
    least.iter().for_each(|&number| append_number(b':', number, out));
}

/// A reply that is no error; if all are errors, the first.
fn any(shares: &mut Shares<'_>, out: &mut Vec<u8>) {
    let replies = (0..shares.count).map(|share| (shares.reply)(share));
    let good = replies
        .filter(|(_, is_error)| !is_error)
        .map(|(bytes, _)| bytes)
        .next();
    match good {
        Some(good) => out.extend_from_slice(good),
        None => {
            has_failed(shares, out);
        }
    }
}
