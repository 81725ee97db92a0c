//! How a listener words replies that no server has made.

/// How a listener words replies that no server has made, and which commands it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStyle {
    /// Proxima's own.
    Own,
    /// twemproxy's.
    Twemproxy {
        /// Whether the listener takes all commands that Proxima serves, and not only those of twemproxy.
        all_commands: bool,
    },
    /// mcrouter's.
    Mcrouter {
        /// Whether clients may flush all servers.
        flush: bool,
    },
}
