//! Globs over keys.

/// Does the pattern match the whole key? The search is greedy with one point to return to: it takes at most
/// pattern × key steps, and does not recurse.
pub(super) fn glob(pattern: &[u8], key: &[u8]) -> bool {
    let (mut p, mut k) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while k < key.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, k));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == key[k] => (p, k) = (p + 1, k + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, k) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs() {
        let cases = [
            ("*", "", true),
            ("*", "anything", true),
            ("user:*", "user:1", true),
            ("user:*", "users:1", false),
            ("*:session", "a:b:session", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("", "x", false),
        ];
        for (pattern, key, expected) in cases {
            assert_eq!(
                glob(pattern.as_bytes(), key.as_bytes()),
                expected,
                "{pattern} ~ {key}"
            );
        }
    }
}
