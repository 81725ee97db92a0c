//! How the sockets of listeners are made.

/// Options of a listener's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// The length of the queue of new connections. The kernel shortens it to `net.core.somaxconn`.
    pub backlog: i32,
    /// Whether the kernel looks after clients that are silent: one whose host is gone says no more.
    pub keepalive: bool,
    /// Whether other processes may listen on the same address.
    pub shared: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            backlog: 4096,
            keepalive: true,
            shared: false,
        }
    }
}
