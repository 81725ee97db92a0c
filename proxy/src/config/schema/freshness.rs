//! How fresh reads of MySQL are, and who says so.

use super::{Config, Consistency, Listener};
use crate::config::document::shortened;

impl Config {
    /// How fresh reads of MySQL are at this listener for clients of whom no route says more, and why: as its
    /// route says, or else as [`Config::usual_consistency`] tells.
    pub fn consistency_at(&self, listener: &Listener) -> Option<(Consistency, String)> {
        match self.route_words(&listener.route).of_others() {
            Some(word) => Some((word, "its route says so".into())),
            None => self.usual_consistency(listener),
        }
    }

    /// How fresh reads of MySQL are at this listener where no route says it, and why: as it says itself, or
    /// else as all pools say below it whose servers follow a writer. Where they differ, reads are `strict`.
    /// `None`: there is no such pool, and the listener says nothing.
    pub fn usual_consistency(&self, listener: &Listener) -> Option<(Consistency, String)> {
        if let Some(word) = listener.door.consistency {
            return Some((word, "the listener says so".into()));
        }
        let pools = self.pools_below(&listener.route);
        let mut writers = pools
            .iter()
            .filter_map(|(name, pool)| Some((*name, pool.one_writer.as_ref()?)));
        let (name, first) = writers.next()?;
        let name = shortened(name);
        Some(match writers.find(|(_, other)| other.word() != first.word()) {
            Some((other, _)) => {
                let why = format!("pools `{name}` and `{}` differ", shortened(other));
                (Consistency::Strict, why)
            }
            None => (first.word(), format!("pool `{name}` {}", first.why())),
        })
    }
}
