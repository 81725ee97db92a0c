//! The texts of `-h`, `-V` and `-D`.

use std::fmt::Write as _;

use super::options::{OPTIONS, Takes};

/// The output of `-V`. Scripts look for its first line.
pub(super) const VERSION: &str = "This is nutcracker-0.5.0\nasync event backend: epoll\n\n";

/// The names and descriptions of all statistics, with the width of their column.
const STATS: [(&str, &[(&str, &str)]); 2] = [
    (
        "pool",
        &[
            ("client_eof", "# eof on client connections"),
            ("client_err", "# errors on client connections"),
            ("client_connections", "# active client connections"),
            ("server_ejects", "# times backend server was ejected"),
            ("forward_error", "# times we encountered a forwarding error"),
            ("fragments", "# fragments created from a multi-vector request"),
        ],
    ),
    (
        "server",
        &[
            ("server_eof", "# eof on server connections"),
            ("server_err", "# errors on server connections"),
            ("server_timedout", "# timeouts on server connections"),
            ("server_connections", "# active server connections"),
            (
                "server_ejected_at",
                "timestamp when server was ejected in usec since epoch",
            ),
            ("requests", "# requests"),
            ("request_bytes", "total request bytes"),
            ("responses", "# responses"),
            ("response_bytes", "total response bytes"),
            ("in_queue", "# requests in incoming queue"),
            ("in_queue_bytes", "current request bytes in incoming queue"),
            ("out_queue", "# requests in outgoing queue"),
            ("out_queue_bytes", "current request bytes in outgoing queue"),
        ],
    ),
];

/// How the program is called.
pub(super) fn usage() -> String {
    let mut text = String::from(
        "Usage: nutcracker [-?hVdDt] [-v verbosity level] [-o output file]\n                  \
         [-c conf file] [-s stats port] [-a stats addr]\n                  \
         [-i stats interval] [-p pid file] [-m mbuf size]\n\nOptions:\n",
    );
    for option in OPTIONS.iter().filter(|option| !option.help.is_empty()) {
        let value = match option.takes {
            Takes::Nothing => "",
            Takes::Number => "=N",
            Takes::File | Takes::Text => "=S",
        };
        let short = match option.short {
            Some(short) => format!("-{short}, "),
            None => "    ".to_owned(),
        };
        let name = format!("{short}--{}{value}", option.name);
        let _ = writeln!(text, "  {name:<22} : {}", option.help);
    }
    text.push('\n');
    text
}

/// What the statistics are.
pub(super) fn statistics() -> String {
    let mut text = String::new();
    for (i, (whose, stats)) in STATS.iter().enumerate() {
        let blank = if i == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{whose} stats:");
        for (name, what) in *stats {
            let _ = writeln!(text, "  {name:<18}  \"{what}\"");
        }
    }
    text
}
