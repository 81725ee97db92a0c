//! `hash` and `hash_func`: a name, or an object with salt, weights and tags.

use super::object::{Object, list, number, text};
use crate::config::{
    Diagnostic, Place,
    document::{Node, Value, shortened},
    reading::Reading,
    schema::{Algorithm, Hash},
    suggest,
};

/// The names that are served.
const SERVED: [(&str, Algorithm); 6] = [
    ("Ch3", Algorithm::Ch3),
    ("Crc32", Algorithm::Crc32),
    ("ConstShard", Algorithm::ConstShard),
    ("WeightedCh3", Algorithm::WeightedCh3),
    ("Rendezvous", Algorithm::Rendezvous),
    ("WeightedRendezvous", Algorithm::WeightedRendezvous),
];

/// Names that mcrouter knows and that are not served yet.
const UNSERVED: [&str; 5] = [
    "Latest",
    "LoadBalancer",
    "WeightedCh3RV",
    "WeightedCh3Rv",
    "ConsistentHash",
];

/// Reads a hash.
pub(super) fn read(node: &Node, cx: &mut Reading) -> Result<Hash, Diagnostic> {
    let Value::Map(_) = &node.value else {
        return Ok(Hash::of(algorithm(node, cx)?));
    };
    let object = Object::of(node, cx)?;
    let algorithm = object.take("hash_func", cx, algorithm)?.unwrap_or(Algorithm::Ch3);
    let hash = with_parameters(Hash::of(algorithm), &object, cx)?;
    object.finish(&["weights_rv"], &[], cx)?;
    Ok(hash)
}

/// Adds the salt, the weights and the tags of an object.
pub(super) fn with_parameters(hash: Hash, object: &Object<'_>, cx: &mut Reading) -> Result<Hash, Diagnostic> {
    let salt = object.take("salt", cx, text)?.unwrap_or(hash.salt);
    let weights = object.take("weights", cx, list(number))?.or(hash.weights);
    let tags = object.take("tags", cx, list(text))?.or(hash.tags);
    Ok(Hash {
        salt,
        weights,
        tags,
        ..hash
    })
}

/// Makes the lists as long as there are children, where the algorithm reads them.
pub(super) fn fit(hash: Hash, children: usize, at: Place, cx: &mut Reading) -> Result<Hash, Diagnostic> {
    let (weighted, tagged) = match hash.algorithm {
        Algorithm::WeightedCh3 => (true, false),
        Algorithm::Rendezvous => (false, true),
        Algorithm::WeightedRendezvous => (true, true),
        _ => (false, false),
    };
    let mut weights = hash.weights.filter(|_| weighted);
    if weighted
        && weights
            .as_ref()
            .is_some_and(|weights| weights.iter().any(|weight| *weight < 0.0))
    {
        return Err(cx.refuse(at, "a weight is negative"));
    }
    if hash.algorithm == Algorithm::WeightedCh3 {
        let listed = weights.get_or_insert_default();
        if listed.len() != children {
            cx.warn(
                at,
                format!(
                    "{} weights for {children} children; missing ones are 0.5",
                    listed.len()
                ),
            );
            listed.resize(children, 0.5);
        }
        listed.iter_mut().for_each(|weight| *weight = weight.min(1.0));
    }
    let tags = hash.tags.filter(|_| tagged);
    let wrong_weights = weights.as_ref().is_some_and(|weights| weights.len() != children);
    if weighted && (weights.is_none() || wrong_weights) {
        return Err(cx.refuse(
            at,
            format!("`weights` must have one entry for each of {children} children"),
        ));
    }
    if tagged && tags.as_ref().is_none_or(|tags| tags.len() != children) {
        return Err(cx.refuse(
            at,
            format!("`tags` must have one entry for each of {children} children"),
        ));
    }
    Ok(Hash {
        weights,
        tags,
        ..hash
    })
}

fn algorithm(node: &Node, cx: &mut Reading) -> Result<Algorithm, Diagnostic> {
    let name = text(node, cx)?;
    let shown = shortened(&name);
    if let Some((_, algorithm)) = SERVED.iter().find(|(known, _)| *known == name) {
        return Ok(*algorithm);
    }
    if UNSERVED.contains(&name.as_str()) {
        return Err(cx.refuse(
            node.at,
            format!(
                "the hash function `{shown}` is not served yet, line: {}",
                node.at.line
            ),
        ));
    }
    Err(Diagnostic {
        remedy: suggest::remedy(&name, SERVED.iter().map(|(name, _)| *name)),
        ..cx.refuse(
            node.at,
            format!("Unknown hash function: {shown} line: {}", node.at.line),
        )
    })
}
