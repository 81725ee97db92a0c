//! The distribution of keys for an algorithm.

use proxima_wire::hash::{Distribution, DistributionError, KeyHash, Node};

use super::hash::Algorithm;

/// The distribution of keys among `nodes` by `algorithm`. `None`: the algorithm does not look at keys.
///
/// # Errors
/// The number, names or weights of the nodes do not fit the algorithm.
pub fn distribution(
    algorithm: Algorithm,
    nodes: &[Node<'_>],
) -> Result<Option<Distribution>, DistributionError> {
    Ok(Some(match algorithm {
        Algorithm::Ketama => Distribution::ketama(nodes, KeyHash::Md5)?,
        Algorithm::KetamaTwemproxy(key_hash) => Distribution::ketama(nodes, key_hash)?,
        Algorithm::Modula(key_hash) => Distribution::modula(nodes, key_hash)?,
        Algorithm::Ch3 => Distribution::ch3(nodes.len())?,
        Algorithm::WeightedCh3 => Distribution::weighted_ch3(nodes)?,
        Algorithm::Crc32 => Distribution::crc32(nodes.len())?,
        Algorithm::ConstShard => Distribution::const_shard(nodes.len())?,
        Algorithm::Rendezvous => Distribution::rendezvous(nodes)?,
        Algorithm::WeightedRendezvous => Distribution::weighted_rendezvous(nodes)?,
        Algorithm::Jump => Distribution::jump(nodes.len())?,
        Algorithm::Random => return Ok(None),
    }))
}
