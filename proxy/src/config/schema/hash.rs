//! Hashing: how a key chooses one of several.

pub use proxima_wire::hash::KeyHash;

/// How a key chooses one of several children.
#[derive(Clone, Debug, PartialEq)]
pub struct Hash {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Appended to the routing key before hashing.
    pub salt: String,
    /// Two characters; only what stands between them in the key is hashed, if anything does.
    pub tag: Option<[u8; 2]>,
    /// The key ends for hashing before the first `|#|`.
    pub stop: bool,
    /// Weights by child where the children are not servers with weights of their own.
    pub weights: Option<Vec<f64>>,
    /// Names by child, for rendezvous.
    pub tags: Option<Vec<String>>,
    /// An ejected child is left out and its keys go to the others; else its keys fail (or fail over).
    pub eject: bool,
}

impl Hash {
    /// The algorithm alone: the whole key but what follows `|#|`, ejected children keep their keys.
    pub const fn of(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            salt: String::new(),
            tag: None,
            stop: true,
            weights: None,
            tags: None,
            eject: false,
        }
    }
}

/// Hash algorithms by the names users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Consistent, libmemcached's points (40 hashes of 4 points a server, weighted as libmemcached does).
    Ketama,
    /// Consistent, twemproxy's points.
    KetamaTwemproxy(KeyHash),
    /// mcrouter's default (furc).
    Ch3,
    /// Ch3 with weights 0..1.
    WeightedCh3,
    /// mcrouter's Crc32: (crc32 & 0x7fffffff) mod n.
    Crc32,
    /// mcrouter's ConstShard.
    ConstShard,
    /// Highest random weight by tags or names.
    Rendezvous,
    /// Rendezvous with weights.
    WeightedRendezvous,
    /// Lamping and Veach's jump hash over XXH3.
    Jump,
    /// hash mod total weight, servers repeated by weight.
    Modula(KeyHash),
    /// A random live one.
    Random,
}
