//! The lines that mcrouter and twemproxy read. Their numbers may have any size: what memcached rejects of
//! them, the server rejects, and the client stays connected.

use proxima_wire::memcache::KEY;

/// The program whose grammar it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    Mcrouter,
    Twemproxy,
}

impl Grammar {
    /// The bytes of the value behind a line that the program reads, with its line end; 0 if the line has no
    /// value. `None` if the line is not read, or if its value has no end that anybody would wait for.
    #[cold]
    pub(super) fn value_behind(self, line: &[u8]) -> Option<u64> {
        let line = line.trim_ascii_end();
        let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let name = words.next()?;
        let is_mcrouters = self == Self::Mcrouter;
        let has_time = words.clone().nth(1).is_some_and(|word| word != b"noreply");
        // A letter for each word; behind them stand more keys (`*`), nothing (`.`), or `noreply`.
        let shape = match name {
            b"get" | b"gets" => "k*",
            b"lease-get" | b"metaget" if is_mcrouters => "k*",
            b"gat" | b"gats" if is_mcrouters => "sk*",
            b"set" | b"add" | b"replace" | b"append" | b"prepend" => "kntl",
            b"cas" => "kntln",
            b"lease-set" if is_mcrouters => "knntl",
            b"incr" | b"decr" => "kd",
            b"touch" => "ks",
            b"delete" if is_mcrouters && has_time => "ks",
            b"delete" => "k",
            b"flush_all" if is_mcrouters => "n.",
            _ => return None,
        };
        let mut value = 0;
        for kind in shape.bytes() {
            if kind == b'*' {
                return words.all(is_key).then_some(0);
            }
            if kind == b'.' {
                return words.next().is_none().then_some(0);
            }
            let word = words.next()?;
            let may_be_negative = match kind {
                b's' => true,
                b't' => is_mcrouters,
                b'd' => !is_mcrouters,
                _ => false,
            };
            let unsigned = word
                .strip_prefix(b"-")
                .filter(|_| may_be_negative)
                .unwrap_or(word);
            let is_good = match kind {
                b'k' => is_key(word),
                _ => !unsigned.is_empty() && unsigned.iter().all(u8::is_ascii_digit),
            };
            if !is_good {
                return None;
            }
            if kind == b'l' {
                value = self.length(word)? + 2;
            }
        }
        let end: Vec<&[u8]> = words.collect();
        (end.is_empty() || end == [b"noreply"]).then_some(value)
    }

    /// A length as the program computes it, which wraps.
    fn length(self, digits: &[u8]) -> Option<u64> {
        let length = digits.iter().fold(0_u64, |length, digit| {
            length.wrapping_mul(10).wrapping_add(u64::from(digit & 0xf))
        });
        match self {
            Self::Twemproxy => Some(u64::from(length as u32)),
            Self::Mcrouter => Some(length).filter(|&length| u32::try_from(length).is_ok()),
        }
    }
}

fn is_key(word: &[u8]) -> bool {
    word.len() <= KEY
}

#[cfg(test)]
mod tests {
    use super::Grammar;

    #[test]
    fn numbers_of_any_size_are_read_and_the_value_is_known() {
        let huge = "9".repeat(40);
        let table = [
            // The line, and the value behind it for mcrouter and for twemproxy.
            (format!("set k 0 {huge} 5"), Some(7), Some(7)),
            (format!("set k {huge} 0 5 noreply"), Some(7), Some(7)),
            (format!("set k 0 -{huge} 5"), Some(7), None),
            ("set k 0 0 00000000000005".into(), Some(7), Some(7)),
            // twemproxy's lengths have 32 bits.
            ("set k 0 0 4294967301".into(), None, Some(7)),
            ("set k 0 0 18446744073709551621".into(), Some(7), Some(7)),
            (format!("cas k 0 0 5 {huge}"), Some(7), Some(7)),
            (format!("lease-set k {huge} 0 0 5"), Some(7), None),
            (format!("incr k {huge}"), Some(0), Some(0)),
            ("incr k -1".into(), None, Some(0)),
            (format!("touch k -{huge} noreply"), Some(0), Some(0)),
            (format!("gat {huge} k k"), Some(0), None),
            ("delete k".into(), Some(0), Some(0)),
            ("delete noreply".into(), Some(0), Some(0)),
            ("delete k noreply".into(), Some(0), Some(0)),
            (format!("delete k {huge}"), Some(0), None),
            ("delete k -5 noreply".into(), Some(0), None),
            (format!("flush_all {huge}"), Some(0), None),
            ("  get   k  k ".into(), Some(0), Some(0)),
        ];
        let mut failures = Vec::new();
        for (line, of_mcrouter, of_twemproxy) in table {
            let text = format!("{line}\r\n");
            let found = [Grammar::Mcrouter, Grammar::Twemproxy].map(|of| of.value_behind(text.as_bytes()));
            if found != [of_mcrouter, of_twemproxy] {
                failures.push(format!("{line}: {found:?}"));
            }
        }
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn what_neither_reads_has_no_value() {
        let long = "k".repeat(251);
        for line in [
            "",
            " ",
            "get",
            "GET k",
            "set k 0 0",
            "set k x 0 5",
            "set k -1 0 5",
            "set k 0 0 -5",
            "set k 0 0 5 x",
            "set k 0 0 5 noreply noreply",
            "cas k 0 0 5",
            "incr k",
            "incr k x",
            "incr k 1x",
            "touch k",
            "touch k -",
            "delete k x",
            "delete k 5 5",
            "flush_all noreply",
            "verbosity 1",
            "mg k",
            &format!("get {long}"),
        ] {
            for of in [Grammar::Mcrouter, Grammar::Twemproxy] {
                assert_eq!(of.value_behind(format!("{line}\r\n").as_bytes()), None, "{line}");
            }
        }
    }
}
