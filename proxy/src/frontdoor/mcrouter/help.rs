//! The text of `--help`.

use std::fmt::Write as _;

use super::options::{OPTIONS, Status, ValueKind};

/// The options with [`Status::Ours`], which no other manual explains.
const OURS: &str = "
What mcrouter has not:
      --admin=ADDRESS            where operators look: /metrics, /ready, /explain, ... (host:port)
      --io=auto|io_uring|epoll   how to talk to the kernel (default auto)
      --keep-writing[=N]         what an AllSyncRoute writes to a whole pool goes on without a lost node, which is
                                 repaired before it is read; N copies must have a write (default: a majority)
      --keep-writing-state=FILE  remembers over a restart which copies miss writes
      --fleet=FILE               all nodes keep one promise: what an AllSyncRoute writes to a whole pool is read at
                                 once, and never stale, through every proxy; FILE has the section `fleet:`
";

/// The options that are served.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Usage: mcrouter [options] [file:FLAVOR]\n\n\
         Proxima, called as mcrouter: takes mcrouter's options and configuration file.\n\n\
         Example: mcrouter --listen-addresses=127.0.0.1 --port=11211 --config=file:mcrouter.json\n\n\
         \x20 -h, --help\n  -V, --version\n      --validate-config[=exit|run]\n",
    );
    for option in OPTIONS.iter().filter(|option| option.status == Status::Served) {
        let short = if option.short == '\0' {
            "    ".to_owned()
        } else {
            format!("-{}, ", option.short)
        };
        let value = match option.takes {
            ValueKind::Toggle(_) | ValueKind::Acks => "[=true|false]".to_owned(),
            ValueKind::Number(number) => format!("=N (default {number})"),
            ValueKind::Text("") => "=VALUE".to_owned(),
            ValueKind::Text(text) => format!("=VALUE (default {text})"),
        };
        let _ = writeln!(text, "  {short}--{}{value}", option.name);
    }
    text.push_str(OURS);
    text.push_str("\nmcrouter's other options are accepted; those without effect are said at start, those that would\nchange what clients get are refused.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_ours_is_explained() {
        for option in OPTIONS.iter().filter(|option| option.status == Status::Ours) {
            assert!(OURS.contains(&format!("--{}", option.name)), "{}", option.name);
        }
    }
}
