//! KILL, with which a client ends another connection of its own user, or its statement.

use crate::protocol::Ending;

/// The number of the connection that a client asks to be ended, and what is to be ended of it; `None` if the
/// text is no KILL of a number.
pub(super) fn target(text: &[u8]) -> Option<(u64, Ending)> {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let first = words.next()?;
    if !is(first, "kill") {
        return None;
    }
    let mut ending = Ending::Client;
    let number = words.find(|word| {
        if is(word, "query") {
            ending = Ending::Request;
        }
        !["hard", "soft", "connection", "query"]
            .iter()
            .any(|name| is(word, name))
    })?;
    match words.next() {
        None => Some((str::from_utf8(number).ok()?.parse().ok()?, ending)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::target;
    use crate::protocol::Ending::{Client, Request};

    #[test]
    fn a_number_is_found_behind_the_words_that_may_stand_before_it() {
        for (text, number) in [
            ("KILL 12", Some((12, Client))),
            ("kill query 7;", Some((7, Request))),
            (" KILL HARD CONNECTION\n 3 ", Some((3, Client))),
            ("KILL USER ann", None),
            ("KILL QUERY ID 5", None),
            ("KILL", None),
            ("SELECT 1", None),
            ("KILL 1 2", None),
        ] {
            assert_eq!(target(text.as_bytes()), number, "{text}");
        }
    }
}
