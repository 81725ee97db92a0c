//! The commands that twemproxy takes.

use proxima_wire::{
    memcache::Command,
    message::{Bad, Parsed, Request},
};

use super::grammar::Grammar;

/// Returns whether twemproxy takes this command. Every number is below 64.
const fn is_taken(command: Command) -> bool {
    use Command::*;
    matches!(
        command,
        Get | Gets
            | Set
            | Add
            | Replace
            | Append
            | Prepend
            | Cas
            | Delete
            | Incr
            | Decr
            | Touch
            | Version
            | Quit
    )
}

/// Its commands, a bit for each number.
const TAKEN: u64 = {
    let mut taken = 0;
    let mut number = 0;
    while number < Command::ALL.len() {
        if is_taken(Command::ALL[number]) {
            taken |= 1 << number;
        }
        number += 1;
    }
    taken
};

/// Closes the connection at what twemproxy does not understand.
#[inline]
pub(super) fn restrict(read: Parsed<Request>, bytes: &[u8], all_commands: bool) -> Parsed<Request> {
    match read {
        Parsed::Head(request) if !all_commands && TAKEN >> request.command & 1 == 0 => {
            Parsed::Bad(Bad::fatal(b""))
        }
        Parsed::Bad(bad) => Parsed::Bad(rejected(bad, bytes)),
        read => read,
    }
}

/// A request that was rejected by the rules of memcached. `bytes` begin with it.
#[cold]
fn rejected(bad: Bad, bytes: &[u8]) -> Bad {
    let blanks = bytes.iter().take_while(|&&byte| byte == b' ').count();
    if blanks > 0 && bad.why.is_empty() {
        // twemproxy skips them.
        return Bad::refused(blanks, b"");
    }
    let line = bytes.get(..bad.head as usize).filter(|_| !bad.close);
    match line.and_then(|line| Grammar::Twemproxy.value_behind(line)) {
        // twemproxy passes it on, and the server rejects it.
        Some(value) => Bad {
            swallow: value,
            ..bad
        },
        None => bad.mute(),
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::memcache::{self, Limits, error};

    use super::*;

    fn read(text: &str) -> Bad {
        let read = memcache::request(text.as_bytes(), &Limits::default());
        match restrict(read, text.as_bytes(), false) {
            Parsed::Bad(bad) => bad,
            read => panic!("{text}: {read:?}"),
        }
    }

    #[test]
    fn what_twemproxy_reads_and_no_server_takes_keeps_the_connection() {
        let huge = "9".repeat(30);
        let table = [
            (format!("set k 0 {huge} 5\r\n"), error::BAD_FORMAT, 7),
            (format!("set k {huge} 0 5 noreply\r\n"), b"", 7),
            ("set k 0 0 00000000000005\r\n".into(), error::BAD_FORMAT, 7),
            ("set k 0 0 4294967301\r\n".into(), error::BAD_FORMAT, 7),
            (format!("cas k 0 0 5 {huge}\r\n"), error::BAD_FORMAT, 7),
            (format!("incr k {huge}\r\n"), error::BAD_DELTA, 0),
            ("incr k -1\r\n".into(), error::BAD_DELTA, 0),
            (format!("touch k -{huge}\r\n"), error::BAD_TTL, 0),
            ("delete noreply\r\n".into(), error::DELETE_USAGE, 0),
        ];
        for (text, reply, swallow) in table {
            let expected = Bad {
                swallow,
                ..Bad::refused(text.len(), reply)
            };
            assert_eq!(read(&text), expected, "{text}");
        }
        let blanks = Bad::refused(2, b"");
        assert_eq!(read("  get k\r\n"), blanks, "what follows is a request");
    }

    #[test]
    fn what_twemproxy_does_not_read_closes_the_connection_without_a_reply() {
        let long = format!("get {}\r\n", "k".repeat(251));
        for text in [
            "set k 0 -99999999999999999999 5\r\n",
            "set k 0 0 -5\r\n",
            "delete k 5\r\n",
            "incr k x\r\n",
            "gat 0 k\r\n",
            "mg k\r\n",
            "GET k\r\n",
            &long,
        ] {
            let bad = read(text);
            assert!(bad.close && bad.reply.is_empty(), "{text}: {bad:?}");
        }
    }
}
