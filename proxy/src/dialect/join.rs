//! Joining of several replies into one.

/// How the replies to the parts of one request become one reply.
#[derive(Clone, Copy, Debug)]
pub enum Join {
    /// The replies follow each other without their trailers, and `end` follows the last. After the first
    /// error only that error is written.
    Chain {
        /// The bytes that close the joined reply.
        end: &'static [u8],
    },
    /// The replies follow each other, errors included. Their number was written before them.
    List,
    /// The joined reply is the sum of their [numbers](super::Dialect::number). The first error is written in
    /// its place.
    Sum {
        /// Appends the reply with this sum.
        total: fn(i64, &mut Vec<u8>),
    },
    /// All replies are held, and the joined reply is made of them.
    Shares(fn(&mut Shares<'_>, &mut Vec<u8>)),
}

/// The replies of several members to the parts of one request.
pub struct Shares<'a> {
    /// The number of replies.
    pub count: usize,
    /// The reply of each key's member, in the order of the keys; empty if the request was divided by members
    /// alone. Of a request that [visits](super::Plan::Visit) members: the number of this one plus 1, and that
    /// of the next plus 1, or 0 if there is none.
    pub order: &'a [u16],
    /// A reply's bytes, and whether it is an error.
    pub reply: &'a dyn Fn(usize) -> (&'a [u8], bool),
    /// A position in each reply, 0 at first.
    pub cursors: &'a mut [usize],
}
