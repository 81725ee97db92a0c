//! Versions of servers.

/// The first version with today's meta commands. Before it, a flag held the length of a value, and the value
/// of today's `ms` would be read as commands.
const FIRST: [u32; 3] = [1, 6, 10];

/// Whether the server that answers this line to `version` reads the meta commands of this codec. `None`: the
/// line does not tell the version.
pub fn meta_commands(line: &[u8]) -> Option<bool> {
    let text = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    let mut parts = text.strip_prefix("VERSION ")?.trim_start().splitn(3, '.');
    // A suffix of the last number is the builder's: `1.6.18-proxima`, `1.6.21_beta1`.
    let mut number = || {
        let part = parts.next()?;
        let end = part
            .find(|char: char| !char.is_ascii_digit())
            .unwrap_or(part.len());
        part[..end].parse().ok()
    };
    Some([number()?, number()?, number()?] >= FIRST)
}

#[cfg(test)]
mod tests {
    use super::meta_commands;

    #[test]
    fn the_syntax_of_today_came_with_1_6_10() {
        for (line, expected) in [
            ("VERSION 1.6.10\r\n", Some(true)),
            ("VERSION 1.6.18 proxima-0.1.0\r\n", Some(true)),
            ("VERSION 1.6.45-1-g1234\r\n", Some(true)),
            ("VERSION 1.10.0\r\n", Some(true)),
            ("VERSION 2.0.0\r\n", Some(true)),
            ("VERSION 1.6.9\r\n", Some(false)),
            ("VERSION 1.5.22\r\n", Some(false)),
            ("VERSION 1.0.0 mcrouter\r\n", Some(false)),
            ("VERSION 1.6\r\n", None),
            ("VERSION x.y.z\r\n", None),
            ("VERSION 99999999999.6.10\r\n", None),
            ("VERSION \r\n", None),
            ("ERROR\r\n", None),
            ("VERSION 1.6.\u{ff11}\r\n", None),
        ] {
            assert_eq!(meta_commands(line.as_bytes()), expected, "{line:?}");
        }
    }
}
