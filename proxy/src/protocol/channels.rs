//! Subscriptions over several servers: the part of the contract for protocols whose servers send messages to
//! subscribers.

use proxima_wire::message::Span;

use super::{Confirmation, Session, SubscriptionChange};

/// Subscriptions of one client at several servers.
pub trait Channels: Send + Sync {
    /// The change that this command asks for; `None` if it changes no subscription.
    fn change(&self, command: u16) -> Option<SubscriptionChange>;

    /// Gives each channel or pattern of a complete request to `take`, in order.
    fn names(&self, message: &[u8], take: &mut dyn FnMut(Span));

    /// The confirmation in this message of a server; `None` if the message is for the client.
    fn confirmation(&self, message: &[u8]) -> Option<Confirmation>;

    /// Is this the beginning of a confirmation? The first words of the message are there.
    fn confirms(&self, begin: &[u8]) -> bool;

    /// Appends the confirmation of a change, as one server of all subscriptions would send it. `name`: the
    /// channel or pattern; `None` if nothing was subscribed. `form`: that of the client's [`Session`].
    fn confirm(
        &self,
        form: u16,
        made: SubscriptionChange,
        name: Option<&[u8]>,
        count: u32,
        out: &mut Vec<u8>,
    );

    /// Notes in the session whether the client has subscriptions at several servers.
    fn subscribed(&self, session: &mut Session, has_subscriptions: bool);
}
