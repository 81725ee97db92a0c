//! Hashes: how a key chooses one of several children.

pub use proxima_wire::hash::KeyHash;

/// The choice of one of several children by the key.
#[derive(Clone, Debug, PartialEq)]
pub struct Hash {
    /// The hash algorithm.
    pub algorithm: Algorithm,
    /// Text that is appended to the routing key before hashing.
    pub salt: String,
    /// Two characters. If the key has text between them, only that is hashed.
    pub tag: Option<[u8; 2]>,
    /// Whether the key ends for hashing before the first `|#|`.
    pub stop: bool,
    /// Weights by child, where the children are not servers with weights of their own.
    pub weights: Option<Vec<f64>>,
    /// Names by child, for rendezvous.
    pub tags: Option<Vec<String>>,
    /// What becomes of the keys of an ejected child.
    pub eject: OnEject,
}

/// What becomes of the keys of an ejected child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEject {
    /// They fail, or fail over.
    Fail,
    /// They go to the other children. All other keys stay where they are.
    Move,
    /// All keys are shared out anew among the children that are left, as twemproxy does it.
    ShareAnew,
}

impl Hash {
    /// The algorithm with defaults: the key up to `|#|` is hashed, and ejected children keep their keys.
    pub const fn of(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            salt: String::new(),
            tag: None,
            stop: true,
            weights: None,
            tags: None,
            eject: OnEject::Fail,
        }
    }
}

/// Hash algorithms by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Consistent, libmemcached's points (40 hashes of 4 points a server, weighted as libmemcached does).
    Ketama,
    /// Consistent, with twemproxy's points.
    KetamaTwemproxy(KeyHash),
    /// mcrouter's default (furc).
    Ch3,
    /// Ch3 with weights 0..1.
    WeightedCh3,
    /// mcrouter's Crc32: `(crc32 & 0x7fffffff) mod n`.
    Crc32,
    /// mcrouter's ConstShard.
    ConstShard,
    /// Highest random weight, by tags or names.
    Rendezvous,
    /// Rendezvous with weights.
    WeightedRendezvous,
    /// Lamping and Veach's jump hash over XXH3.
    Jump,
    /// The hash modulo the total weight; servers are repeated by weight.
    Modula(KeyHash),
    /// Any child that is up.
    Random,
}
