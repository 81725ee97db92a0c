//! The keys of a request.

use super::{
    Args, Command, append_number,
    command::{Begin, Find, Spec},
    integer,
};
use crate::message::Span;

/// The most specifications that a command has.
const MOST: usize = 4;

/// The word before the keys of `XREAD` and `XREADGROUP`.
const STREAMS: &str = "STREAMS";
/// The options that may stand before that word, and how many words belong to each.
const OPTIONS: [(&str, usize); 3] = [("GROUP", 2), ("COUNT", 1), ("BLOCK", 1)];

/// The words before the key that `SORT` and `GEORADIUS` write. The last of them counts.
const STORES: [&str; 2] = ["STORE", "STOREDIST"];
/// The other options with words of their own, and how many.
const BEFORE_STORE: [(&str, usize); 4] = [("BY", 1), ("GET", 1), ("LIMIT", 2), ("COUNT", 1)];

/// Positions of arguments: the first, the last and the step.
type Positions = (u32, u32, u32);

/// Gives each key of this command's complete message to `take`, in the order of the arguments; `channels`:
/// its channels instead. Arguments that should say where keys are and do not mean no keys: the server then
/// answers an error.
pub fn each_key(command: &Command, message: &[u8], channels: bool, take: &mut dyn FnMut(Span)) {
    let mut all = [(1, 0, 1); MOST];
    let count = Args::of(message).left();
    let specs = command.specs.iter().filter(|spec| spec.is_channel == channels);
    for (place, spec) in all.iter_mut().zip(specs) {
        if let Some(positions) = resolve(spec, message, count) {
            *place = positions;
        }
    }
    let last = all.iter().map(|positions| positions.1).max().unwrap_or(0);
    for (at, arg) in (0..=last).zip(Args::of(message)) {
        let is_key =
            |&(first, last, step): &Positions| (first..=last).contains(&at) && (at - first) % step == 0;
        if all.iter().any(is_key) {
            take(arg);
        }
    }
}

/// Does a pattern of this `SORT` stand for the names of keys? Without `*` it names none, and `#` is an
/// element.
pub(super) fn names_keys(message: &[u8]) -> bool {
    let mut words = Args::of(message).skip(2).map(|arg| arg.of(message));
    let is_pattern = |word: &[u8]| word.eq_ignore_ascii_case(b"by") || word.eq_ignore_ascii_case(b"get");
    while let Some(word) = words.next() {
        if is_pattern(word) && words.next().is_some_and(|pattern| pattern.contains(&b'*')) {
            return true;
        }
    }
    false
}

/// Appends a command with its name, which has so many words, and some of the keys of `message`, each with the
/// `step - 1` arguments behind it. It takes a time in proportion to what it appends.
pub fn append_part(
    message: &[u8],
    words: usize,
    step: usize,
    keys: &mut dyn Iterator<Item = Span>,
    out: &mut Vec<u8>,
) {
    let mut args = Args::of(message);
    let first = args.position();
    let mut count = args.by_ref().take(words).count() as i64;
    let name = first..args.position();
    // The number of arguments is known only behind them. It is then moved to the front.
    let begin = out.len();
    out.extend_from_slice(message.get(name).unwrap_or_default());
    for key in keys {
        let mut args = Args::from_argument(message, key, step as u32);
        let from = args.position();
        count += args.by_ref().count() as i64;
        out.extend_from_slice(message.get(from..args.position()).unwrap_or_default());
    }
    let args = out.len();
    append_number(b'*', count, out);
    let head = out.len() - args;
    out[begin..].rotate_right(head);
}

fn resolve(spec: &Spec, message: &[u8], count: u32) -> Option<Positions> {
    let begin = match spec.begin {
        Begin::Index(index) => index,
        Begin::Keyword(word, from) => behind(word, from, message, count)?,
    };
    let positions = match spec.find {
        Find::Range { last, step, limit } => {
            let last = if last >= 0 {
                begin + last as u32
            } else if limit > 1 {
                begin + (count.checked_sub(begin)? / limit).checked_sub(1)?
            } else {
                count.checked_add_signed(last)?
            };
            (begin, last, step)
        }
        Find::Number { at, first, step } => {
            let number = Args::of(message).nth((begin + at) as usize)?;
            let number = u32::try_from(integer(number.of(message))?).ok()?;
            let first = begin + first;
            let last = first.checked_add(number.checked_mul(step)?)?.checked_sub(1)?;
            (first, last, step)
        }
    };
    let (first, last, step) = positions;
    (first >= 1 && last < count && step > 0).then_some((first, last, step))
}

/// The position behind the keyword.
fn behind(word: &str, from: i32, message: &[u8], count: u32) -> Option<u32> {
    let is_word = |arg: &Span| arg.of(message).eq_ignore_ascii_case(word.as_bytes());
    let mut args = (0..count).zip(Args::of(message));
    let found = match u32::try_from(from) {
        // Options may stand in any order, and what belongs to one may be any word, this one too.
        Ok(_) if word == STREAMS => {
            let mut args = args.skip(1);
            loop {
                let (at, arg) = args.next()?;
                if is_word(&arg) {
                    break Some(at);
                }
                let text = arg.of(message);
                let option = OPTIONS
                    .iter()
                    .find(|(name, _)| text.eq_ignore_ascii_case(name.as_bytes()));
                if let Some(&(_, words)) = option {
                    args.nth(words - 1)?;
                }
            }
        }
        Ok(from) if STORES.contains(&word) => {
            let mut args = args.skip(from as usize);
            let mut last = None;
            while let Some((at, arg)) = args.next() {
                let text = arg.of(message);
                let is = |name: &str| text.eq_ignore_ascii_case(name.as_bytes());
                if STORES.into_iter().any(is) {
                    args.next()?;
                    last = Some((at, is_word(&arg)));
                } else if let Some(&(_, words)) = BEFORE_STORE.iter().find(|(name, _)| is(name)) {
                    args.nth(words - 1)?;
                }
            }
            last.filter(|&(_, is_word)| is_word).map(|(at, _)| at)
        }
        Ok(from) => args
            .find(|(at, arg)| *at >= from && is_word(arg))
            .map(|(at, _)| at),
        Err(_) => {
            let end = count.checked_add_signed(from)?;
            args.filter(|(at, arg)| *at <= end && is_word(arg))
                .map(|(at, _)| at)
                .last()
        }
    };
    found.map(|at| at + 1)
}
