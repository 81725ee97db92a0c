//! Hashes: how a key chooses one of several children.

pub use proxima_wire::hash::KeyHash;

use std::{fmt, mem::discriminant};

use crate::config::{
    Diagnostic,
    document::Node,
    form::{Choice, Flag, Form, List, Optional, Shape, Tag, Text, Weight, Word},
    reading::Reading,
    section::section,
};

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

section! {
    /// How a key chooses one of several children. The name of an algorithm alone is enough.
    #[short(algorithm)]
    struct HashKeys {
        /// The algorithm.
        algorithm: Word<Algorithm>,
        /// How `ketama_twemproxy` and `modula` turn the key into a number. The default is `fnv1a_64`.
        key_hash: Optional<Word<KeyHash>>,
        /// Appended to the key before hashing.
        salt: Text = String::new(),
        /// Two characters, as `"{}"`. If the key has text between them, only that is hashed.
        tag: Optional<Tag>,
        /// The key ends for hashing before the first `|#|`.
        stop: Flag = true,
        /// Weights by child, where the children are not servers with weights of their own.
        weights: Optional<List<Weight>>,
        /// Names by child, for `rendezvous` over routes.
        tags: Optional<List<Text>>,
        /// An ejected child is left out and its keys go to the others; otherwise its keys fail, or fail over.
        eject: Flag = false,
    }
}

impl Choice for Algorithm {
    const WHAT: &'static str = "a hash algorithm";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("ketama", Self::Ketama, "consistent, the points of libmemcached"),
        (
            "ketama_twemproxy",
            Self::KetamaTwemproxy(KeyHash::Fnv1a64),
            "consistent, the points of twemproxy",
        ),
        (
            "ch3",
            Self::Ch3,
            "consistent, mcrouter's default; servers may only be added at the end",
        ),
        (
            "weighted_ch3",
            Self::WeightedCh3,
            "`ch3` with weights from 0 to 1",
        ),
        ("crc32", Self::Crc32, "mcrouter's Crc32: modulo, not consistent"),
        (
            "const_shard",
            Self::ConstShard,
            "the number between the key's first two colons, or else `ch3`",
        ),
        (
            "rendezvous",
            Self::Rendezvous,
            "highest random weight; any server may come and go",
        ),
        (
            "weighted_rendezvous",
            Self::WeightedRendezvous,
            "`rendezvous` with weights",
        ),
        (
            "jump",
            Self::Jump,
            "jump hash over XXH3; servers may only be added at the end",
        ),
        (
            "modula",
            Self::Modula(KeyHash::Fnv1a64),
            "twemproxy's modulo over the weights, not consistent",
        ),
        ("random", Self::Random, "any that is up"),
    ];
}

impl fmt::Display for Algorithm {
    /// Writes its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::WORDS
            .iter()
            .find(|(_, algorithm, _)| discriminant(algorithm) == discriminant(self));
        f.write_str(found.map_or("", |(word, ..)| word))
    }
}

impl Choice for KeyHash {
    const WHAT: &'static str = "a key hash";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("fnv1a_64", Self::Fnv1a64, "FNV-1a, the lower half of 64 bits"),
        ("fnv1_64", Self::Fnv1_64, "FNV-1, the lower half of 64 bits"),
        ("fnv1a_32", Self::Fnv1a32, "FNV-1a, 32 bits"),
        ("fnv1_32", Self::Fnv1_32, "FNV-1, 32 bits"),
        ("one_at_a_time", Self::OneAtATime, "Jenkins' one-at-a-time"),
        ("md5", Self::Md5, "the first 4 bytes of MD5"),
        ("crc16", Self::Crc16, "CRC-16"),
        ("crc32", Self::Crc32, "CRC-32 as libmemcached cuts it"),
        ("crc32a", Self::Crc32a, "CRC-32, all bits"),
        ("hsieh", Self::Hsieh, "Hsieh's SuperFastHash"),
        ("murmur", Self::Murmur, "MurmurHash"),
        ("jenkins", Self::Jenkins, "Jenkins' lookup3"),
    ];
}

/// A hash as it stands in a configuration.
#[derive(Debug)]
pub(super) struct HashForm;

impl Form for HashForm {
    type Value = Hash;

    fn shape() -> Shape {
        HashKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Hash, Diagnostic> {
        let HashKeys {
            algorithm,
            key_hash,
            salt,
            tag,
            stop,
            weights,
            tags,
            eject,
        } = HashKeys::read(node, cx)?;
        let algorithm = match (algorithm, key_hash) {
            (Algorithm::KetamaTwemproxy(default), chosen) => {
                Algorithm::KetamaTwemproxy(chosen.unwrap_or(default))
            }
            (Algorithm::Modula(default), chosen) => Algorithm::Modula(chosen.unwrap_or(default)),
            (other, None) => other,
            (_, Some(_)) => {
                return Err(cx
                    .refuse(node.at, "`key_hash` is for `ketama_twemproxy` and `modula` only")
                    .with_remedy("leave it out"));
            }
        };
        Ok(Hash {
            algorithm,
            salt,
            tag,
            stop,
            weights,
            tags,
            eject: if eject { OnEject::Move } else { OnEject::Fail },
        })
    }

    fn show(value: &Hash) -> Option<String> {
        Word::<Algorithm>::show(&value.algorithm)
    }
}
