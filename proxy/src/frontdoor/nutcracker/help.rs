//! The texts of `-h`, `-V` and `-D`.

use std::fmt::Write as _;

use super::options::{OPTIONS, ValueKind};

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

/// The metrics of ours that say more than those, and their descriptions. All of them are at the admin port.
const OURS: &[(&str, &str)] = &[
    ("clients_accepted_total", "Clients that connected."),
    ("clients_closed_total", "Clients closed by the proxy, by reason."),
    ("requests_in_flight", "Requests sent to servers and not answered."),
    (
        "request_duration_seconds",
        "From a request's last byte to its reply, by listener.",
    ),
    (
        "lookups_total",
        "Keys that clients have looked for, by command and result.",
    ),
    ("pool_members", "Members of a pool, by whether they may be asked."),
    (
        "pool_request_duration_seconds",
        "From sending to a member of this pool to its reply.",
    ),
    ("member_ejections_total", "Times this member was ejected."),
    (
        "member_failures_total",
        "Connections to this member that broke or were late.",
    ),
    ("config_failures_total", "Configurations that were refused."),
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
            ValueKind::Nothing => "",
            ValueKind::Number => "=N",
            ValueKind::File | ValueKind::Text => "=S",
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

/// The description of the statistics.
pub(super) fn statistics() -> String {
    let mut text = String::new();
    for (i, (whose, stats)) in STATS.iter().enumerate() {
        let blank = if i == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{whose} stats:");
        for (name, what) in *stats {
            let _ = writeln!(text, "  {name:<18}  \"{what}\"");
        }
    }
    text.push_str("\nproxima metrics (among others, with --admin: /metrics):\n");
    for (name, what) in OURS {
        let name = format!("proxima_{name}");
        let _ = writeln!(text, "  {name:<37}  \"{what}\"");
    }
    text.push_str("\nwhether enough servers are up, for load balancers: with --health and --health-min\n");
    text
}
