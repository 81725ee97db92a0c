//! The order in which a failover asks its children.

use proxima_wire::message::Outcome;

use crate::config::{
    Diagnostic,
    document::Node,
    form::{Count, Flag, Form, List, Optional, Shape, Share, Text, Word},
    reading::Reading,
    section::section,
};

/// The order in which a failover asks its children. The first one is always the first of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FailoverPolicy {
    /// The order of the list.
    #[default]
    InOrder,
    /// Those with the fewest failures in a row come first.
    LeastFailures {
        /// The most tries.
        tries: u32,
    },
    /// An order by a hash of the key, mcrouter's DeterministicOrderPolicy.
    HashOrder(Box<HashOrder>),
    /// By their scores for the key.
    Rendezvous {
        /// A name for each child but the first.
        tags: Vec<String>,
    },
}

/// The order of a failover by a hash of the key.
#[derive(Clone, Debug, PartialEq)]
pub struct HashOrder {
    /// The most tries.
    pub tries: u32,
    /// The most errors, those of ejected children not counted.
    pub error_tries: u32,
    /// The errors that count against neither limit.
    pub exclude: Vec<Outcome>,
    /// The weights of the children; `None`: all are equal.
    pub weights: Option<Vec<f64>>,
    /// The failure domain of each child; empty: no domains.
    pub domains: Vec<Option<u32>>,
    /// The first child is a pool of the others: the server that it chooses is not asked again.
    pub knows_first: bool,
}

/// The order of a failover's children.
#[derive(Debug)]
pub(super) struct PolicyForm;

impl Form for PolicyForm {
    type Value = FailoverPolicy;

    fn shape() -> Shape {
        PolicyKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<FailoverPolicy, Diagnostic> {
        let keys = PolicyKeys::read(node, cx)?;
        match (keys.least_failures, keys.hash_order, keys.rendezvous) {
            (Some(tries), None, None) => Ok(FailoverPolicy::LeastFailures { tries }),
            (None, Some(keys), None) => {
                let domains = keys.domains.unwrap_or_default();
                Ok(FailoverPolicy::HashOrder(Box::new(HashOrder {
                    tries: keys.tries,
                    error_tries: keys.error_tries,
                    exclude: keys.exclude,
                    weights: keys.weights,
                    domains: domains.into_iter().map(Some).collect(),
                    knows_first: keys.knows_first,
                })))
            }
            (None, None, Some(tags)) => Ok(FailoverPolicy::Rendezvous { tags }),
            _ => {
                let problem = "a policy is one of `least_failures`, `hash_order` and `rendezvous`";
                Err(cx.refuse(node.at, problem))
            }
        }
    }

    fn show(_: &FailoverPolicy) -> Option<String> {
        None
    }
}

section! {
    /// The order of children. There is one of these keys.
    struct PolicyKeys {
        /// Those with the fewest failures in a row come first; the number is that of tries at most. A worker
        /// counts by itself, and only the first 64 children are asked.
        least_failures: Optional<Count<1>>,
        /// The order depends on the key.
        hash_order: Optional<HashOrderKeys>,
        /// The order depends on the key, by rendezvous. The names are those of the children behind the first.
        rendezvous: Optional<List<Text>>,
    }
}

section! {
    /// An order that depends on the key.
    struct HashOrderKeys {
        /// Tries at most.
        tries: Count<1>,
        /// Errors at most; ejected children do not count.
        error_tries: Count<1>,
        /// Errors that count against neither number.
        exclude: List<Word<Outcome>> = Vec::new(),
        /// Weights from 0 to 1, one for each child.
        weights: Optional<List<Share>>,
        /// Failure domains, a number for each child. A domain in which a child has failed is passed by, as
        /// long as there are others.
        domains: Optional<List<Count>>,
        /// The first child is a pool of all the others. The server that it chooses is not asked again.
        knows_first: Flag = true,
    }
}
