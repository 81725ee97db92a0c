//! twemproxy's command-line options as data, and ours beside them.

use std::fmt;

/// One option.
#[derive(Debug)]
pub(super) struct Opt {
    /// The long name without its dashes.
    pub(super) name: &'static str,
    /// The short name. `None`: an option of ours.
    pub(super) short: Option<char>,
    pub(super) takes: ValueKind,
    /// The line of the help.
    pub(super) help: &'static str,
}

/// The kind of value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// None: it is on or off.
    Nothing,
    Number,
    /// The name of a file.
    File,
    /// Any text.
    Text,
}

const fn opt(name: &'static str, short: char, takes: ValueKind, help: &'static str) -> Opt {
    Opt {
        name,
        short: Some(short),
        takes,
        help,
    }
}

const fn ours(name: &'static str, takes: ValueKind, help: &'static str) -> Opt {
    Opt {
        name,
        short: None,
        takes,
        help,
    }
}

/// The option of the process that `-d` starts. It is no option for people, and the help does not name it.
pub const DETACHED: &str = "detached";

/// All options, in the order of the help.
pub(super) const OPTIONS: &[Opt] = &[
    opt("help", 'h', ValueKind::Nothing, "this help"),
    opt("version", 'V', ValueKind::Nothing, "show version and exit"),
    opt(
        "test-conf",
        't',
        ValueKind::Nothing,
        "test configuration for syntax errors and exit",
    ),
    opt("daemonize", 'd', ValueKind::Nothing, "run as a daemon"),
    opt(
        "describe-stats",
        'D',
        ValueKind::Nothing,
        "print stats description and exit",
    ),
    opt(
        "verbose",
        'v',
        ValueKind::Number,
        "set logging level (default: 5, min: 0, max: 11)",
    ),
    opt(
        "output",
        'o',
        ValueKind::File,
        "set logging file (default: stderr)",
    ),
    opt(
        "conf-file",
        'c',
        ValueKind::File,
        "set configuration file (default: conf/nutcracker.yml, or /etc/nutcracker/nutcracker.yml)",
    ),
    opt(
        "stats-port",
        's',
        ValueKind::Number,
        "set stats monitoring port (default: 22222)",
    ),
    opt(
        "stats-addr",
        'a',
        ValueKind::Text,
        "set stats monitoring ip (default: 0.0.0.0)",
    ),
    opt(
        "stats-interval",
        'i',
        ValueKind::Number,
        "set stats aggregation interval in msec (default: 30000 msec)",
    ),
    opt("pid-file", 'p', ValueKind::File, "set pid file (default: off)"),
    opt(
        "mbuf-size",
        'm',
        ValueKind::Number,
        "set size of mbuf chunk in bytes (default: 16384 bytes)",
    ),
    ours(
        "admin",
        ValueKind::Text,
        "where operators look: /metrics, /ready, /explain, ... (host:port)",
    ),
    ours(
        "health",
        ValueKind::Text,
        "where load balancers ask over HTTP whether to send clients here ([POOL=]host:port)",
    ),
    ours(
        "health-min",
        ValueKind::Text,
        "servers of each pool that must be up for that ([POOL=]N; default: 1)",
    ),
    ours(
        "health-allow",
        ValueKind::Text,
        "who may ask there: an IP address or a network (default: everybody)",
    ),
    ours(
        "drain-file",
        ValueKind::File,
        "lead clients away while this file is there",
    ),
    ours(
        "drain-delay",
        ValueKind::Text,
        "time for which load balancers are told so before (5s, 250ms, ...; default: 0s)",
    ),
    ours(
        "also-listen",
        ValueKind::Text,
        "where a pool is served, too, as Proxima serves it (POOL=host:port or POOL=/path)",
    ),
    ours(
        "tls-certificate",
        ValueKind::Text,
        "certificate for TLS with clients ([POOL=]FILE, PEM)",
    ),
    ours("tls-key", ValueKind::Text, "its key ([POOL=]FILE, PEM)"),
    ours(
        "server-tls-ca",
        ValueKind::Text,
        "TLS with servers: whose certificates they have ([POOL=]FILE, PEM, or system)",
    ),
    ours(
        "server-tls-name",
        ValueKind::Text,
        "name in their certificates ([POOL=]NAME; default: each one's host)",
    ),
    ours(
        "server-tls-certificate",
        ValueKind::Text,
        "certificate that they are shown ([POOL=]FILE, PEM; default: none)",
    ),
    ours("server-tls-key", ValueKind::Text, "its key ([POOL=]FILE, PEM)"),
    ours(
        "server-tls-verify",
        ValueKind::Text,
        "what theirs have to prove ([POOL=]full, authority or none; default: full)",
    ),
    ours(DETACHED, ValueKind::Nothing, ""),
    ours(
        "all-commands",
        ValueKind::Nothing,
        "take all commands that Proxima serves, not only those of twemproxy",
    ),
    ours(
        "io",
        ValueKind::Text,
        "how to talk to the kernel: auto, io_uring or epoll",
    ),
    ours(
        "workers",
        ValueKind::Number,
        "worker threads (default: one for each processor)",
    ),
];

/// The result of a look for a long name. It may be abbreviated as long as it means one option of twemproxy's,
/// or none of those and one of ours.
pub(super) fn by_long(name: &str) -> Option<&'static Opt> {
    if let Some(exact) = OPTIONS.iter().find(|option| option.name == name) {
        return Some(exact);
    }
    let begin_so = |is_ours: bool| {
        OPTIONS.iter().filter(move |option| {
            let is_for_people = !option.help.is_empty();
            option.name.starts_with(name) && option.short.is_none() == is_ours && is_for_people
        })
    };
    let is_ours = begin_so(false).next().is_none();
    let mut found = begin_so(is_ours);
    found
        .next()
        .filter(|_| !name.is_empty() && found.next().is_none())
}

/// The option with this short name.
pub(super) fn by_short(short: char) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.short == Some(short))
}

/// How messages name an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// By its short name.
    Short(char),
    /// By its long one, as it has no other.
    Long(&'static str),
}

impl Label {
    pub(super) fn of(option: &Opt) -> Self {
        option.short.map_or(Self::Long(option.name), Self::Short)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(name) => write!(f, "-{name}"),
            Self::Long(name) => write!(f, "--{name}"),
        }
    }
}

impl ValueKind {
    /// The kind of value in words, for messages about a missing one.
    pub(super) fn asked(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::File => "a file name",
            Self::Text | Self::Nothing => "a string",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_may_be_cut_as_long_as_they_mean_one_option() {
        let name = |text| by_long(text).map(|option| option.name);
        assert_eq!(name("conf-file"), Some("conf-file"));
        assert_eq!(name("con"), Some("conf-file"));
        assert_eq!(name("verb"), Some("verbose"));
        assert_eq!(name("ver"), None, "version and verbose");
        assert_eq!(name("stats-"), None);
        assert_eq!(
            name("de"),
            Some("describe-stats"),
            "no option of ours makes one of twemproxy's ambiguous"
        );
        assert_eq!(name("detach"), None);
        assert_eq!(name("detached"), Some("detached"));
        assert_eq!(name("w"), Some("workers"));
        assert_eq!(name("a"), None, "admin, all-commands and also-listen");
        assert_eq!(name("he"), Some("help"), "not health");
        assert_eq!(name("hea"), None, "health and health-min");
        assert_eq!(name("health"), Some("health"), "a whole name means itself");
        assert_eq!(name(""), None);
    }
}
