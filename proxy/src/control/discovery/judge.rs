//! Decides between the list in use and the one that the endpoint has told now.
//!
//! A list with a higher version is newer. A list with a lower one comes from a node that lags behind, or else
//! the cluster was made anew and counts from the beginning. In the second case no node is in both lists, and
//! none of the earlier ones accepts a connection.

use crate::members::discovery::NodeList;

/// What becomes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the list in use from now on.
    Take,
    /// The list in use stays.
    Keep,
    /// It is taken if all nodes of the list in use are gone.
    IfGone,
}

/// Judges the list that was `told`.
pub(super) fn judge(known: &NodeList, told: &NodeList) -> Verdict {
    match told {
        told if told.version > known.version => Verdict::Take,
        // With the same nodes only the number differs. A cluster that counts anew must not wait until it has
        // come to where it was.
        told if told.nodes() == known.nodes() => Verdict::Take,
        // A node was replaced and has another address.
        told if told.version == known.version && told.has_same_names(known) => Verdict::Take,
        told if told.is_apart_from(known) => Verdict::IfGone,
        _ => Verdict::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_version_is_taken_and_a_lower_one_only_of_other_nodes() {
        let list = |text: &str| NodeList::parse(text.as_bytes()).unwrap();
        let known = list("5\na|10.0.0.1|1 b|10.0.0.2|1");
        for (told, verdict) in [
            ("6\nc||1", Verdict::Take),
            ("6\na|10.0.0.1|1 b|10.0.0.2|1", Verdict::Take),
            ("5\na|10.0.0.1|1 b|10.0.0.2|1", Verdict::Take),
            ("1\na|10.0.0.1|1 b|10.0.0.2|1", Verdict::Take),
            ("5\na|10.0.0.9|1 b|10.0.0.2|1", Verdict::Take),
            ("4\na|10.0.0.9|1 b|10.0.0.2|1", Verdict::Keep),
            ("5\na|10.0.0.1|1", Verdict::Keep),
            ("4\na|10.0.0.1|1 b|10.0.0.2|1 c||1", Verdict::Keep),
            ("4\na|10.0.0.1|1", Verdict::Keep),
            ("1\na|10.0.0.8|1 b|10.0.0.9|1", Verdict::IfGone),
            ("1\nc||1", Verdict::IfGone),
            ("5\nc||1", Verdict::IfGone),
        ] {
            assert_eq!(judge(&known, &list(told)), verdict, "{told}");
        }
    }
}
