//! The origin of a request.

use crate::{engine::ClientId, members::Locality, protocol::Protocol};

/// The origin of a request: facts that every step of its walk needs and none changes.
#[derive(Clone, Copy)]
pub struct Origin {
    /// The number of the listener that it came through.
    pub listener: u16,
    /// The form in which the client wants its replies; its meaning is the protocol's.
    pub form: u16,
    /// The number of the login that it needs at servers.
    pub login: u16,
    /// The place of the client when it asked.
    pub locality: Locality,
    /// The client that asks; `None`: it is no client's request.
    pub client: Option<ClientId>,
    /// The protocol of the listener.
    pub protocol: &'static dyn Protocol,
    /// Whether routes look at the key without the routing prefix that it still has.
    pub hides_prefix: bool,
}
