//! How a listener words its own replies: Proxima's way, twemproxy's or mcrouter's.

/// How a listener words its own replies, and which commands it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyStyle {
    /// Proxima's own.
    #[default]
    Own,
    /// twemproxy's: errors have the C library's texts, and what twemproxy does not understand closes the
    /// connection.
    Twemproxy {
        /// The listener takes all commands that Proxima serves, and not only those of twemproxy.
        all_commands: bool,
    },
    /// mcrouter's: errors have its texts, what it cannot parse closes the connection, and its clients may end
    /// the process.
    Mcrouter {
        /// Clients may flush all servers.
        flush: bool,
    },
}
