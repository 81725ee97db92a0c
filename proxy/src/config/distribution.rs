//! The distribution that an algorithm's name means.

use proxima_wire::hash::{Distribution, DistributionError, KeyHash, Node};

use super::schema::Algorithm;

/// How `algorithm` shares keys out among `nodes`; none for the one that does not look at keys.
///
/// # Errors
/// The nodes' number, names or weights are not such that it can.
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
