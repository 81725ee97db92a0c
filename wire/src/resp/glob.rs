//! The patterns of names and keys: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a byte that stands for itself.

/// Does the pattern match the whole key? It takes at most as many steps as the product of the two lengths.
pub fn matches(pattern: &[u8], key: &[u8]) -> bool {
    let (mut pattern, mut key) = (pattern, key);
    // What follows the last `*`, and the key from where it was tried last.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(behind) = pattern.strip_prefix(b"*") {
            if behind.is_empty() {
                return true;
            }
            (again, pattern) = (Some((behind, key)), behind);
            continue;
        }
        match (one(pattern, key), again) {
            (Some((rest, left)), _) => (pattern, key) = (rest, left),
            (None, _) if pattern.is_empty() && key.is_empty() => return true,
            (None, Some((behind, [_, from @ ..]))) => {
                (again, pattern, key) = (Some((behind, from)), behind, from);
            }
            (None, _) => return false,
        }
    }
}

/// Matches one byte. Returns what is left of the pattern and of the key.
fn one<'p, 'k>(pattern: &'p [u8], key: &'k [u8]) -> Option<(&'p [u8], &'k [u8])> {
    let (&byte, left) = key.split_first()?;
    let (&wanted, rest) = pattern.split_first()?;
    let (matches, rest) = match (wanted, rest) {
        (b'?', rest) => (true, rest),
        (b'[', rest) => class(rest, byte),
        (b'\\', [escaped, rest @ ..]) => (*escaped == byte, rest),
        (wanted, rest) => (wanted == byte, rest),
    };
    matches.then_some((rest, left))
}

/// Looks a byte up in a class, whose opening bracket is gone. A class without an end ends with the pattern.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_negated, mut rest) = match pattern.strip_prefix(b"^") {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let mut is_in = false;
    loop {
        rest = match rest {
            [b'\\', escaped, rest @ ..] => {
                is_in |= *escaped == byte;
                rest
            }
            [b']', rest @ ..] => return (is_in != is_negated, rest),
            [] => return (is_in != is_negated, rest),
            [from, b'-', to, rest @ ..] => {
                is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                rest
            }
            [same, rest @ ..] => {
                is_in |= *same == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_servers_match_them() {
        for (pattern, key, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*e", "abcde", true),
            ("a*c*f", "abcde", false),
            ("**", "x", true),
            ("?", "x", true),
            ("?", "", false),
            ("h[ae]llo", "hello", true),
            ("h[^e]llo", "hello", false),
            ("h[a-e]llo", "hcllo", true),
            ("h[e-a]llo", "hcllo", true),
            ("[]", "a", false),
            ("[^]", "a", true),
            ("[a", "a", true),
            (r"[\]]", "]", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"\", r"\", true),
            ("a-b", "a-b", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), key.as_bytes()),
                expected,
                "{pattern} {key}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(1_000) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(10_000).as_bytes()));
    }
}
