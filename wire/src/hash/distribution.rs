//! Distributions: from keys to members.

use std::collections::HashMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{
    DistributionError, KeyHash,
    const_shard::const_shard,
    continuum::Continuum,
    furc::furc,
    jump::jump,
    modula::Modula,
    rendezvous::{Rendezvous, WeightedRendezvous},
    weighted_ch3::WeightedCh3,
};

/// Members of a distribution at most. It bounds the memory of the largest kind, ketama, to about 150 MiB.
pub const MAX_MEMBERS: usize = 1 << 16;

/// Draws for a key whose member is not live before the next live one is taken.
const TRIES: u64 = 32;

/// The weights that ketama and rendezvous take.
const ANY_WEIGHT: &str = "a number from 0 to 3e38";

/// A member as a distribution sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node<'a> {
    /// Its name; see [`ketama_name`](super::ketama_name).
    pub name: &'a str,
    /// Its share of the keys, relative to the others'; with 0 it gets none.
    pub weight: f64,
}

/// A distribution of keys among members, which are numbered from 0 in the order given. It is built once. A
/// question to it takes no lock and allocates nothing, except that [`salted`](super::salted()) allocates for
/// keys of WeightedCh3 beyond 510 bytes.
#[derive(Debug)]
pub struct Distribution {
    /// From 1 to [`MAX_MEMBERS`].
    members: usize,
    method: Method,
}

#[derive(Debug)]
enum Method {
    Ketama(Continuum, KeyHash),
    Modula(Modula, KeyHash),
    Ch3,
    WeightedCh3(WeightedCh3),
    Crc32,
    ConstShard,
    Rendezvous(Rendezvous),
    WeightedRendezvous(WeightedRendezvous),
    Jump,
}

impl Distribution {
    /// Ketama with the points of libmemcached's weighted ketama and of twemproxy: 160 for a member of average
    /// weight. libmemcached hashes keys by [`KeyHash::Md5`], twemproxy by what is configured.
    ///
    /// Weights are single-precision numbers of at least 0, names differ.
    pub fn ketama(nodes: &[Node<'_>], key_hash: KeyHash) -> Result<Self, DistributionError> {
        Self::of(nodes.len(), || {
            distinct_names(nodes)?;
            some_weight(nodes, f64::from(f32::MAX), ANY_WEIGHT)?;
            Ok(Method::Ketama(Continuum::new(nodes), key_hash))
        })
    }

    /// The key's number modulo the total weight: each member stands for as many remainders as its weight
    /// says. Weights are whole numbers. For twemproxy's answers sort the members by
    /// [`twemproxy_order`](super::twemproxy_order).
    pub fn modula(nodes: &[Node<'_>], key_hash: KeyHash) -> Result<Self, DistributionError> {
        Self::of(nodes.len(), || {
            const WHOLE: &str = "a whole number from 0 to 4294967295";
            some_weight(nodes, f64::from(u32::MAX), WHOLE)?;
            if let Some(member) = nodes.iter().position(|node| node.weight.fract() != 0.0) {
                let weight = nodes[member].weight;
                return Err(DistributionError::Weight {
                    member,
                    weight,
                    expected: WHOLE,
                });
            }
            let weights: Vec<u32> = nodes.iter().map(|node| node.weight as u32).collect();
            Ok(Method::Modula(
                Modula::new(&weights).ok_or(DistributionError::TooMuchWeight)?,
                key_hash,
            ))
        })
    }

    /// mcrouter's Ch3, [`furc`].
    pub fn ch3(members: usize) -> Result<Self, DistributionError> {
        Self::of(members, || Ok(Method::Ch3))
    }

    /// mcrouter's WeightedCh3. A weight, from 0 to 1, is the part of the member's Ch3 keys that it keeps.
    pub fn weighted_ch3(nodes: &[Node<'_>]) -> Result<Self, DistributionError> {
        Self::of(nodes.len(), || {
            some_weight(nodes, 1.0, "a number from 0 to 1")?;
            Ok(Method::WeightedCh3(WeightedCh3::new(
                nodes.iter().map(|node| node.weight),
            )))
        })
    }

    /// mcrouter's Crc32: the lower 31 bits of the CRC-32, modulo the number of members.
    pub fn crc32(members: usize) -> Result<Self, DistributionError> {
        Self::of(members, || Ok(Method::Crc32))
    }

    /// mcrouter's ConstShard: the member that the key names (`x:12:y` names 12), else Ch3's.
    pub fn const_shard(members: usize) -> Result<Self, DistributionError> {
        Self::of(members, || Ok(Method::ConstShard))
    }

    /// mcrouter's Rendezvous over the members' names, which differ. It costs time in proportion to the
    /// members.
    pub fn rendezvous(nodes: &[Node<'_>]) -> Result<Self, DistributionError> {
        Self::of(nodes.len(), || {
            distinct_names(nodes)?;
            Ok(Method::Rendezvous(Rendezvous::new(
                nodes.iter().map(|node| node.name),
            )))
        })
    }

    /// mcrouter's WeightedRendezvous over the members' names, which differ; weights are as for ketama.
    pub fn weighted_rendezvous(nodes: &[Node<'_>]) -> Result<Self, DistributionError> {
        Self::of(nodes.len(), || {
            distinct_names(nodes)?;
            some_weight(nodes, f64::from(f32::MAX), ANY_WEIGHT)?;
            let members = nodes.iter().map(|node| (node.name, node.weight));
            Ok(Method::WeightedRendezvous(WeightedRendezvous::new(members)))
        })
    }

    /// Jump consistent hash over XXH3's 64 bits.
    pub fn jump(members: usize) -> Result<Self, DistributionError> {
        Self::of(members, || Ok(Method::Jump))
    }

    fn of(
        members: usize,
        method: impl FnOnce() -> Result<Method, DistributionError>,
    ) -> Result<Self, DistributionError> {
        match members {
            0 => Err(DistributionError::NoMembers),
            1..=MAX_MEMBERS => Ok(Self {
                members,
                method: method()?,
            }),
            _ => Err(DistributionError::TooManyMembers(members)),
        }
    }

    /// The member of `key`. A single member is returned without a look at the key.
    #[inline]
    pub fn pick(&self, key: &[u8]) -> usize {
        if self.members == 1 {
            return 0;
        }
        match &self.method {
            Method::Ketama(continuum, key_hash) => continuum.owner_of(number(*key_hash, key)),
            Method::Modula(modula, key_hash) => modula.pick(number(*key_hash, key)),
            Method::Ch3 => furc(key, self.members),
            Method::WeightedCh3(weighted) => weighted.pick(key),
            Method::Crc32 => (KeyHash::Crc32a.hash(key) & 0x7fff_ffff) as usize % self.members,
            Method::ConstShard => const_shard(key, self.members).unwrap_or_else(|| furc(key, self.members)),
            // One of all members has the highest score, so the default is never taken.
            Method::Rendezvous(rendezvous) => rendezvous.pick_live(key, |_| true).unwrap_or_default(),
            Method::WeightedRendezvous(weighted) => weighted.pick_live(key, |_| true).unwrap_or_default(),
            Method::Jump => jump(xxh3_64(key), self.members),
        }
    }

    /// The members of four keys: the results of [`pick`](Self::pick), sooner.
    pub fn pick_four(&self, keys: [&[u8]; 4]) -> [usize; 4] {
        match &self.method {
            Method::Ketama(continuum, key_hash) if keys.iter().all(|key| !key.is_empty()) => {
                key_hash.hash_four(keys).map(|number| continuum.owner_of(number))
            }
            _ => keys.map(|key| self.pick(key)),
        }
    }

    /// The member of `key` among those that are live: its own if that is one, and otherwise, so that only
    /// keys of members that are not live move and go back when these return,
    ///
    /// * ketama: the owner of the next point around the circle that is live;
    /// * rendezvous: the live member with the highest score;
    /// * WeightedCh3: as if the others had weight 0;
    /// * all others: up to 32 draws by XXH3 of the key with the draw's number, from 1, as seed; the first
    ///   draw of a live member counts, else the next live member behind the key's own. Modula draws in
    ///   proportion to weights.
    ///
    /// None when no member is live that may get keys (one without weight, or without points, may not).
    ///
    /// twemproxy and libmemcached eject differently: they share out all keys anew among those that are left.
    /// For their answers build another distribution over the live members only.
    pub fn pick_live(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        if self.members == 1 {
            return is_live(0).then_some(0);
        }
        match &self.method {
            Method::Ketama(continuum, key_hash) => {
                let hash = number(*key_hash, key);
                let own = continuum.owner_of(hash);
                if is_live(own) {
                    return Some(own);
                }
                // If no member is live, asking each once costs a hundredth of asking at each point.
                let any = (0..self.members).any(&is_live);
                any.then(|| continuum.owners_from(hash).find(|&owner| is_live(owner)))
                    .flatten()
            }
            Method::WeightedCh3(weighted) => weighted.pick_live(key, is_live),
            Method::Rendezvous(rendezvous) => rendezvous.pick_live(key, is_live),
            Method::WeightedRendezvous(weighted) => weighted.pick_live(key, is_live),
            Method::Modula(modula, _) => {
                let may = |member: usize| modula.weighs(member) && is_live(member);
                self.redraw(key, may, |draw| modula.pick_by_draw(draw))
            }
            Method::Ch3 | Method::Crc32 | Method::ConstShard | Method::Jump => {
                self.redraw(key, is_live, |draw| super::pick_random(self.members, draw))
            }
        }
    }

    fn redraw(
        &self,
        key: &[u8],
        may: impl Fn(usize) -> bool,
        member_of: impl Fn(u64) -> usize,
    ) -> Option<usize> {
        let own = self.pick(key);
        let drawn = (1..=TRIES).map(|seed| member_of(xxh3_64_with_seed(key, seed)));
        let behind = (own + 1..self.members).chain(0..own);
        std::iter::once(own)
            .chain(drawn)
            .chain(behind)
            .find(|&member| may(member))
    }
}

/// twemproxy gives the empty key the number 0 whatever the hash; libmemcached has no empty keys.
#[inline]
fn number(key_hash: KeyHash, key: &[u8]) -> u32 {
    if key.is_empty() { 0 } else { key_hash.hash(key) }
}

fn distinct_names(nodes: &[Node<'_>]) -> Result<(), DistributionError> {
    let mut seen = HashMap::with_capacity(nodes.len());
    for (member, node) in nodes.iter().enumerate() {
        if let Some(first) = seen.insert(node.name, member) {
            return Err(DistributionError::SameName(first, member));
        }
    }
    Ok(())
}

/// Checks that every weight is from 0 to `most`, and that their sum is an ordinary single-precision number
/// above 0.
fn some_weight(nodes: &[Node<'_>], most: f64, expected: &'static str) -> Result<(), DistributionError> {
    for (member, &Node { weight, .. }) in nodes.iter().enumerate() {
        if !(0.0..=most).contains(&weight) {
            return Err(DistributionError::Weight {
                member,
                weight,
                expected,
            });
        }
    }
    let total: f64 = nodes.iter().map(|node| node.weight).sum();
    if total < f64::from(f32::MIN_POSITIVE) {
        return Err(DistributionError::NoWeight);
    }
    if total > f64::from(f32::MAX) {
        return Err(DistributionError::TooMuchWeight);
    }
    Ok(())
}
