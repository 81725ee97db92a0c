//! Plans for requests.

/// The session's plan for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The request walks the tree.
    Route,
    /// The request walks the tree to a dedicated lane of the client, which stays the client's as long as the
    /// session's [`Retention`](super::Retention) says. Without a key it goes to the lane that the client has.
    /// The bytes that the codec has appended are requests to be sent before it, whose replies nobody gets.
    Dedicated,
    /// The request is planned again when every earlier one of its client is answered. The call has changed
    /// nothing.
    Later,
    /// The request changes the client's [subscriptions](super::Channels), which may be at several servers.
    Subscribe,
    /// The request has several keys. It walks the tree as it is if all of them are at one server; otherwise
    /// it is [split](super::Requests::spread).
    Spread {
        /// It can be split.
        is_divisible: bool,
    },
    /// The request goes to every member that it concerns, and the replies are
    /// [joined](super::Requests::spread); to one of them, if they cannot be.
    Everywhere,
    /// The request goes to one of the members that the client can reach, which
    /// [`ClientSide::visit`](super::ClientSide::visit) names, so that a client can visit one after the other.
    Visit,
    /// The request goes to the only member that can be reached; where there are others, what the codec has
    /// appended is the reply.
    Alone,
    /// The codec has appended a request that is served in place of this one.
    Instead,
    /// The session answers the request; the codec has appended the reply.
    Answer,
    /// The request is rejected with an error of this text.
    Reject(&'static str),
    /// The request goes to every member of the listener's tree.
    Broadcast,
    /// The proxy answers its own metrics, or those of the servers behind it.
    Stats,
    /// The codec answers with [counters](super::ClientSide::counters) of the process.
    Counters,
    /// The codec answers with [facts](super::ClientSide::connection) of the client's connection.
    Connection,
    /// The control thread answers, because the request is about the whole process. It may be no large
    /// request, and nothing may be due to its client.
    Consult,
    /// The proxy answers which proxies clients of this listener may use, in this form of those in which the
    /// protocol tells it. While they are not known, what the codec has appended is the reply.
    Announce(u16),
    /// A login begins anew: what the codec has appended leaves, and [`admit`](super::ClientSide::admit) is
    /// called at once, without bytes. Nothing may be due to the client.
    Admit,
    /// The connection is closed after the replies that are due and what the codec has appended.
    Close,
    /// As `Close`, for a request that is not taken here. The client counts as one that failed.
    CloseAsFailed,
    /// The process ends, and the client gets no reply.
    Shutdown,
}
