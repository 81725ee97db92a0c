//! The two questions for the nodes of a cluster, as ElastiCache's clients ask them.

/// A question for the list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// The one of engines from 1.4.14 on.
    Config,
    /// The one that older engines answer: the list is the value of a key.
    Key,
}

impl Discovery {
    /// Both questions, the newer one first. Each stands at the index that is its number.
    pub const ALL: [Self; 2] = [Self::Config, Self::Key];

    /// The key that the older question asks for.
    pub const KEY: &[u8] = b"AmazonElastiCache:cluster";

    /// The request.
    pub const fn line(self) -> &'static [u8] {
        match self {
            Self::Config => b"config get cluster\r\n",
            Self::Key => b"get AmazonElastiCache:cluster\r\n",
        }
    }

    /// The words before the length in the answer.
    pub const fn head(self) -> &'static str {
        match self {
            Self::Config => "CONFIG cluster 0 ",
            Self::Key => "VALUE AmazonElastiCache:cluster 0 ",
        }
    }
}
