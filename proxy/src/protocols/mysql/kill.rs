//! KILL, with which a client ends a statement of another connection of its own user.

/// The number of the connection that a client asks to be ended; `None` if the text is no KILL of a number.
pub(super) fn target(text: &[u8]) -> Option<u64> {
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
    let number = words.find(|word| {
        !["hard", "soft", "connection", "query"]
            .iter()
            .any(|name| is(word, name))
    })?;
    match words.next() {
        None => str::from_utf8(number).ok()?.parse().ok(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_number_is_found_behind_the_words_that_may_stand_before_it() {
        for (text, number) in [
            ("KILL 12", Some(12)),
            ("kill query 7;", Some(7)),
            (" KILL HARD CONNECTION\n 3 ", Some(3)),
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
