//! Decides between the list in use and the one that the endpoint has told now.
//!
//! A list with a higher version is newer. A list with a lower one comes from a node that lags behind, or else
//! the cluster was made anew and counts from the beginning. In the second case no node is in both lists, and
//! none of the earlier ones accepts a connection. If the nodes are the same, it tells the lower version in
//! each answer.

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

/// Answers in a row that must tell the same lower version before it counts.
const ANSWERS: u32 = 3;

/// Judges the lists that an endpoint tells, one after another.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// The lower version of the same nodes that the last answers told, and how many of them did.
    lower: Option<(u64, u32)>,
}

impl Judge {
    /// Judges the list that was `told`.
    pub(super) fn judge(&mut self, known: &NodeList, told: &NodeList) -> Verdict {
        let before = self.lower.take();
        match told {
            told if told.version > known.version => Verdict::Take,
            told if told.nodes() == known.nodes() => match told.version == known.version {
                true => Verdict::Take,
                false => self.lower(before, told.version),
            },
            // A node was replaced and has another address.
            told if told.version == known.version && told.has_same_names(known) => Verdict::Take,
            told if told.is_apart_from(known) => Verdict::IfGone,
            _ => Verdict::Keep,
        }
    }

    /// Judges a lower version of the same nodes. A node that lags behind may tell a list that was there
    /// before. If its version counted at once, a list between the two would be newer than the one in use,
    /// and a server that was removed would be back. A cluster that counts anew tells it again and again, and
    /// must not wait until it has come to where it was.
    fn lower(&mut self, before: Option<(u64, u32)>, version: u64) -> Verdict {
        let answers = match before {
            Some((same, answers)) if same == version => answers + 1,
            _ => 1,
        };
        if answers >= ANSWERS {
            return Verdict::Take;
        }
        self.lower = Some((version, answers));
        Verdict::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> NodeList {
        NodeList::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn higher_version_is_taken_and_a_lower_one_only_of_other_nodes() {
        let known = list("5\na|10.0.0.1|1 b|10.0.0.2|1");
        for (told, verdict) in [
            ("6\nc||1", Verdict::Take),
            ("6\na|10.0.0.1|1 b|10.0.0.2|1", Verdict::Take),
            ("5\na|10.0.0.1|1 b|10.0.0.2|1", Verdict::Take),
            ("4\na|10.0.0.1|1 b|10.0.0.2|1", Verdict::Keep),
            ("5\na|10.0.0.9|1 b|10.0.0.2|1", Verdict::Take),
            ("4\na|10.0.0.9|1 b|10.0.0.2|1", Verdict::Keep),
            ("5\na|10.0.0.1|1", Verdict::Keep),
            ("4\na|10.0.0.1|1 b|10.0.0.2|1 c||1", Verdict::Keep),
            ("4\na|10.0.0.1|1", Verdict::Keep),
            ("1\na|10.0.0.8|1 b|10.0.0.9|1", Verdict::IfGone),
            ("1\nc||1", Verdict::IfGone),
            ("5\nc||1", Verdict::IfGone),
        ] {
            assert_eq!(Judge::default().judge(&known, &list(told)), verdict, "{told}");
        }
    }

    #[test]
    fn lower_version_of_the_same_nodes_is_taken_when_three_answers_in_a_row_tell_it() {
        let known = list("5\na||1 b||1");
        let again = "1\na||1 b||1";
        for between in ["5\na||1 b||1", "2\na||1 b||1", "4\na||1 b||1 c||1", "1\nc||1"] {
            let mut judge = Judge::default();
            let mut told = |text| judge.judge(&known, &list(text));
            assert_eq!([again; 2].map(&mut told), [Verdict::Keep; 2]);
            told(between);
            assert_eq!([again; 2].map(&mut told), [Verdict::Keep; 2], "{between}");
            assert_eq!(told(again), Verdict::Take, "{between}");
        }
    }

    #[test]
    fn removed_node_stays_removed_when_several_nodes_lag_behind() {
        let mut known = list("5\na||1 b||1");
        let mut judge = Judge::default();
        for lagging in ["3\na||1 b||1", "4\na||1 b||1 c||1"] {
            let told = list(lagging);
            if judge.judge(&known, &told) == Verdict::Take {
                known = told;
            }
        }
        assert_eq!(known, list("5\na||1 b||1"));
    }
}
