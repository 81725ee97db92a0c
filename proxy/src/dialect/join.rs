//! Joining of several keys' replies into one.

/// How the replies to the keys of one request become one reply.
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
}
