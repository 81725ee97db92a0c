//! A second keeper in the same state, and a hash of that state. A model needs both: it continues from one
//! state in several ways, and recognises a state that it has seen.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::Keeper;

impl Keeper {
    /// A keeper in the same state, which shares nothing with this one.
    pub fn fork(&self) -> Self {
        Self {
            shared: Arc::new(self.shared.fork()),
            rules: self.rules,
            view: Arc::clone(&self.view),
            me: self.me,
            changes: self.changes.clone(),
            lines: self.lines.clone(),
            doubts: self.doubts.clone(),
            missed: self.missed.clone(),
            decisions: self.decisions.clone(),
            history: self.history.clone(),
            sends: self.sends.clone(),
        }
    }
}

/// Views are told apart by their numbers: the model knows which one each of them is.
impl Hash for Keeper {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.view.number, self.me).hash(state);
        self.shared.words().for_each(|word| state.write_u64(word));
        self.changes.iter().for_each(|(_, change)| change.hash(state));
        self.lines.hash(state);
        let history = self.history.views.iter().map(|view| view.number);
        history.for_each(|number| state.write_u64(number));
        state.write_u64(sum(self.doubts.lines()));
        state.write_u64(sum(self
            .missed
            .iter()
            .map(|(peer, missed)| (peer, missed.count()))));
        state.write_u64(sum(self.decisions.iter()));
    }
}

/// A hash that does not depend on the order.
fn sum<T: Hash>(entries: impl Iterator<Item = T>) -> u64 {
    entries.fold(0, |sum, entry| {
        let mut hasher = DefaultHasher::new();
        entry.hash(&mut hasher);
        sum.wrapping_add(hasher.finish())
    })
}
