//! `hash` and `hash_func`: how one of several children is chosen. It is a name, or an object with salt,
//! weights and tags.

use super::{balanced::Balanced, latest::Latest};
use crate::{
    config::{
        Diagnostic, Place,
        document::{Node, Value, shortened},
        reading::Reading,
        routes,
        schema::{Algorithm, Children, Hash, Route},
        suggest,
    },
    frontdoor::mcrouter::object::{Object, list, number, text},
};

/// How one of several children is chosen.
pub(super) enum Choice {
    /// By the key.
    Hash(Hash),
    /// A few of them, by the host.
    Latest(Latest),
    /// By the load, which is the same for all.
    Balanced(Balanced),
}

impl Choice {
    /// The choice with these weights, if it reads weights and has none.
    pub(super) fn or_weights(self, weights: Vec<f64>) -> Self {
        match self {
            Self::Hash(hash) => Self::Hash(Hash {
                weights: hash.weights.or(Some(weights)),
                ..hash
            }),
            other => other,
        }
    }

    /// The choice with these names of children, if it reads names and has none.
    pub(super) fn or_tags(self, tags: Vec<String>) -> Self {
        match self {
            Self::Hash(hash) => Self::Hash(Hash {
                tags: hash.tags.or(Some(tags)),
                ..hash
            }),
            other => other,
        }
    }
}

/// The names that are served.
const SERVED: [(&str, Kind); 10] = [
    ("Ch3", Kind::Hash(Algorithm::Ch3)),
    ("Crc32", Kind::Hash(Algorithm::Crc32)),
    ("ConstShard", Kind::Hash(Algorithm::ConstShard)),
    ("WeightedCh3", Kind::Hash(Algorithm::WeightedCh3)),
    // Its weights are those of a runtime variable, which stand here already.
    ("WeightedCh3RV", Kind::Hash(Algorithm::WeightedCh3)),
    ("WeightedCh3Rv", Kind::Hash(Algorithm::WeightedCh3)),
    ("Rendezvous", Kind::Hash(Algorithm::Rendezvous)),
    ("WeightedRendezvous", Kind::Hash(Algorithm::WeightedRendezvous)),
    ("Latest", Kind::Latest),
    ("LoadBalancer", Kind::LoadBalancer),
];

/// Names that mcrouter knows and that are not served yet.
const UNSERVED: [&str; 1] = ["ConsistentHash"];

#[derive(Clone, Copy)]
enum Kind {
    Hash(Algorithm),
    Latest,
    LoadBalancer,
}

/// Reads the value of `hash`.
pub(super) fn read(node: &Node, cx: &mut Reading) -> Result<Choice, Diagnostic> {
    let Value::Map(_) = &node.value else {
        return with_parameters(kind(node, cx)?, None, cx);
    };
    let object = Object::of(node, cx)?;
    let choice = of_object(&object, cx)?;
    object.finish(&[], &[], cx)?;
    Ok(choice)
}

/// Reads `hash_func`, and the parameters beside it.
pub(super) fn of_object(object: &Object<'_>, cx: &mut Reading) -> Result<Choice, Diagnostic> {
    // HashRoute takes a whole object there as well.
    if let Some(node) = object.get("hash_func")
        && let Value::Map(_) = &node.value
    {
        return cx.within("hash_func", |cx| read(node, cx));
    }
    let kind = object.take("hash_func", cx, kind)?;
    with_parameters(kind.unwrap_or(Kind::Hash(Algorithm::Ch3)), Some(object), cx)
}

fn with_parameters(kind: Kind, object: Option<&Object<'_>>, cx: &mut Reading) -> Result<Choice, Diagnostic> {
    let Some(object) = object else {
        return Ok(match kind {
            Kind::Hash(algorithm) => Choice::Hash(Hash::of(algorithm)),
            Kind::Latest => Choice::Latest(Latest::default()),
            Kind::LoadBalancer => Choice::Balanced(Balanced::default()),
        });
    };
    match kind {
        Kind::Hash(algorithm) => {
            let hash = Hash::of(algorithm);
            Ok(Choice::Hash(Hash {
                salt: object.take("salt", cx, text)?.unwrap_or_default(),
                weights: object.take("weights", cx, list(number))?,
                tags: object.take("tags", cx, list(text))?,
                ..hash
            }))
        }
        Kind::Latest => Latest::read(object, cx).map(Choice::Latest),
        Kind::LoadBalancer => Balanced::read(object, cx).map(Choice::Balanced),
    }
}

/// The route that chooses one of this number of children.
pub(super) fn over(
    choice: Choice,
    children: Children,
    count: usize,
    at: Place,
    cx: &mut Reading,
) -> Result<Route, Diagnostic> {
    Ok(match choice {
        Choice::Hash(hash) => Route::of(
            routes::ByHash {
                hash: Some(fit(hash, count, at, cx)?),
            },
            children,
        ),
        Choice::Latest(latest) => latest.over(children),
        Choice::Balanced(balanced) => balanced.over(children),
    })
}

/// Makes the lists as long as there are children, where the algorithm reads them.
fn fit(hash: Hash, children: usize, at: Place, cx: &mut Reading) -> Result<Hash, Diagnostic> {
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
            cx.fault(
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

fn kind(node: &Node, cx: &mut Reading) -> Result<Kind, Diagnostic> {
    let name = text(node, cx)?;
    let shown = shortened(&name);
    if let Some((_, kind)) = SERVED.iter().find(|(known, _)| *known == name) {
        return Ok(*kind);
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
