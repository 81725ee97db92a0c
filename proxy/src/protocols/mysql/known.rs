//! The prepared statements that a server knows on one connection.

use std::{collections::HashMap, sync::Arc};

use super::{prepared::PreparedStatement, settings::Settings};

/// The most statements that are kept on a connection. The one that was used longest ago is closed for a
/// further one.
const MOST: usize = 128;

/// A statement as a server knows it.
#[derive(Debug)]
pub(super) struct KnownStatement {
    /// The server's number.
    pub(super) number: u32,
    pub(super) parameters: u16,
    /// The types of its parameters that the server was told last.
    pub(super) types: Vec<u8>,
    /// The server keeps a cursor of it, or parts of parameters.
    pub(super) is_open: bool,
    settings: Arc<Settings>,
    used: u64,
}

/// All of them, by text.
#[derive(Debug, Default)]
pub(super) struct KnownStatements {
    all: HashMap<Arc<[u8]>, Vec<KnownStatement>>,
    count: usize,
    /// Bytes of memory that they take.
    bytes: usize,
    /// Counts the uses.
    clock: u64,
}

impl KnownStatement {
    /// Bytes of memory that it takes with its text, and with the types of all of its parameters.
    const fn memory(&self, text: &[u8]) -> usize {
        size_of::<Self>() + text.len() + 2 * self.parameters as usize
    }
}

impl KnownStatements {
    /// The statement as this server knows it; `None` if the server does not.
    pub(super) fn get(&mut self, prepared: &PreparedStatement) -> Option<&mut KnownStatement> {
        self.clock += 1;
        let known = self.all.get_mut(&*prepared.text)?;
        let one = known.iter_mut().find(|one| one.settings == prepared.settings)?;
        one.used = self.clock;
        Some(one)
    }

    /// Adds a statement that the server has prepared. Returns the numbers of those that are to be closed.
    pub(super) fn add(
        &mut self,
        (text, settings): (&Arc<[u8]>, &Arc<Settings>),
        number: u32,
        parameters: u16,
    ) -> Vec<u32> {
        self.clock += 1;
        let mut closed = Vec::new();
        if self.count >= MOST {
            closed.extend(self.remove_oldest());
        }
        let one = KnownStatement {
            number,
            parameters,
            types: Vec::new(),
            is_open: false,
            settings: Arc::clone(settings),
            used: self.clock,
        };
        self.bytes += one.memory(text);
        let known = self.all.entry(Arc::clone(text)).or_default();
        match known.iter_mut().find(|other| other.settings == *settings) {
            // It was prepared anew.
            Some(other) => {
                self.bytes -= other.memory(text);
                closed.push(std::mem::replace(other, one).number);
            }
            None => {
                known.push(one);
                self.count += 1;
            }
        }
        closed
    }

    fn remove_oldest(&mut self) -> Option<u32> {
        let all = self.all.iter();
        let closed = all.flat_map(|(text, known)| known.iter().map(move |one| (one, text)));
        let oldest = closed
            .filter(|(one, _)| !one.is_open)
            .map(|(one, text)| (one.used, one.number, text));
        let (_, number, text) = oldest.min_by_key(|&(used, ..)| used)?;
        let text = Arc::clone(text);
        let known = self.all.get_mut(&text)?;
        let at = known.iter().position(|one| one.number == number)?;
        self.bytes -= known.swap_remove(at).memory(&text);
        if known.is_empty() {
            self.all.remove(&text);
        }
        self.count -= 1;
        Some(number)
    }

    /// Bytes of memory that they take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::sql::Statement;

    use super::*;

    fn prepared(text: &str, settings: &Arc<Settings>) -> PreparedStatement {
        PreparedStatement {
            text: text.as_bytes().into(),
            settings: Arc::clone(settings),
            statement: Statement::UNKNOWN,
            parameters: 0,
            types: Vec::new(),
            is_open: false,
        }
    }

    #[test]
    fn a_statement_is_known_in_the_state_in_which_it_was_prepared() {
        let (one, other) = (Arc::default(), Arc::new(Settings::of_schema(b"other")));
        let mut known = KnownStatements::default();
        let statement = prepared("SELECT 1", &one);
        assert!(known.get(&statement).is_none());
        assert!(known.add((&statement.text, &one), 7, 0).is_empty());
        assert_eq!(known.get(&statement).unwrap().number, 7);
        assert!(known.get(&prepared("SELECT 1", &other)).is_none());
        assert!(known.add((&statement.text, &other), 8, 0).is_empty());
        assert_eq!(known.get(&statement).unwrap().number, 7);
        assert_eq!(
            known.add((&statement.text, &one), 9, 0),
            [7],
            "it was prepared anew"
        );
    }

    #[test]
    fn the_statement_that_was_used_longest_ago_is_closed_for_a_further_one() {
        let settings = Arc::default();
        let mut known = KnownStatements::default();
        let all: Vec<_> = (0..=MOST)
            .map(|number| prepared(&format!("SELECT {number}"), &settings))
            .collect();
        for (number, one) in all.iter().enumerate().take(MOST) {
            assert!(known.add((&one.text, &settings), number as u32, 0).is_empty());
        }
        assert!(known.get(&all[0]).is_some());
        let before = known.memory();
        assert_eq!(known.add((&all[MOST].text, &settings), 999, 7), [1]);
        assert_eq!(
            known.memory(),
            before + "SELECT 128".len() - "SELECT 1".len() + 14
        );
        assert!(known.get(&all[1]).is_none() && known.get(&all[0]).is_some());
        assert_eq!(known.count, MOST);
    }
}
