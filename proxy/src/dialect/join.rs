//! From the replies to several keys to one.

/// How the replies to the keys of one request become the reply to it.
#[derive(Clone, Copy, Debug)]
pub enum Join {
    /// One behind the other without their trailers, and `end` behind the last. The first error stands for all that follow.
    Chain { end: &'static [u8] },
    /// One behind the other, errors too: how many will come was said before them.
    List,
    /// The sum of the [numbers](super::Dialect::number) that they say, as `total` appends it. The first error stands for all.
    Sum { total: fn(i64, &mut Vec<u8>) },
}
