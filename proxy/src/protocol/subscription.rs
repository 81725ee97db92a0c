//! Subscriptions: their subjects, the confirmations of servers, and their numbers as servers count them.

use proxima_wire::message::Span;

/// The subject of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A channel, whose messages are published at the server of its name.
    Channel,
    /// A pattern of names of channels, which may be at any server.
    Pattern,
    /// A channel as [`Subject::Channel`] is, which is counted apart.
    Shard,
}

/// A change of the subscriptions of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// The subject that is subscribed or unsubscribed.
    pub subject: Subject,
    /// It is subscribed.
    pub adds: bool,
}

/// A server has made a change for one channel or pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// The change.
    pub made: SubscriptionChange,
    /// The channel or pattern, in the message; absent if the server had none to unsubscribe.
    pub name: Span,
    /// The number of subscriptions that the connection has at that server from now on: channels and patterns
    /// together, or shard channels.
    pub count: u32,
}

/// The numbers of channels, patterns and shard channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionCounts([u32; 3]);

impl SubscriptionCounts {
    /// Nothing is subscribed.
    pub const NONE: Self = Self([0; 3]);

    /// The number of one kind.
    pub(crate) fn of(&self, subject: Subject) -> u32 {
        self.0[subject as usize]
    }

    /// The number that a server tells with a confirmation: channels and patterns are counted together.
    pub(crate) fn told(&self, subject: Subject) -> u32 {
        match subject {
            Subject::Shard => self.of(Subject::Shard),
            Subject::Channel | Subject::Pattern => self
                .of(Subject::Channel)
                .saturating_add(self.of(Subject::Pattern)),
        }
    }

    /// Is nothing subscribed?
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::NONE
    }

    /// Counts what has come (1), has gone (-1) or was there before (0).
    pub(crate) fn add(&mut self, subject: Subject, delta: i8) {
        let count = &mut self.0[subject as usize];
        *count = count.saturating_add_signed(i32::from(delta));
    }

    /// Counts what the server has confirmed. Returns by how much the number changes; `None`: the server's
    /// number is not possible.
    pub(crate) fn confirm(&mut self, confirmation: &Confirmation) -> Option<i8> {
        let made = confirmation.made;
        let told = self.told(made.subject);
        let delta = match made.adds {
            _ if confirmation.count == told => 0,
            true if told.checked_add(1) == Some(confirmation.count) => 1,
            false if confirmation.count.checked_add(1) == Some(told) => -1,
            _ => return None,
        };
        self.add(made.subject, delta);
        Some(delta)
    }
}
