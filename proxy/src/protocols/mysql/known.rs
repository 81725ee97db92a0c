//! The prepared statements that a server knows on one connection, and what it has said of them.

use std::{collections::HashMap, mem::take, sync::Arc};

use super::{prepared::PreparedStatement, settings::Settings};
use crate::protocol::SharedCount;

/// The most statements that are kept on a connection, and the most bytes of memory for them. The one that was
/// used longest ago is closed for a further one.
const MOST: usize = 1024;
const MOST_BYTES: usize = 1 << 20;

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
    /// The server's reply to PREPARE, with the number of [changes](SharedCount) that were seen by then; empty
    /// if it is not known, or is void.
    description: (Box<[u8]>, u32),
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
    /// The number of statements that the server has prepared on all connections.
    shared: SharedCount,
    /// The most statements that it prepares for the proxy.
    most_shared: Option<u32>,
}

impl KnownStatement {
    /// Bytes of memory that it takes with its text, and with the types of all of its parameters.
    const fn memory(&self, text: &[u8]) -> usize {
        size_of::<Self>() + text.len() + 2 * self.parameters as usize + self.description.0.len()
    }
}

impl KnownStatements {
    /// They are counted with those of the server's other connections here.
    pub(super) fn share(&mut self, count: &SharedCount) {
        self.shared = count.clone();
    }

    /// The server prepares this many statements for everybody, of which a fifth is left to others. `None`: it
    /// has not told.
    pub(super) fn limit(&mut self, most: Option<u32>) {
        self.most_shared = most.map(|most| most / 5 * 4);
    }

    /// The statement as this server knows it; `None` if the server does not.
    pub(super) fn get(&mut self, prepared: &PreparedStatement) -> Option<&mut KnownStatement> {
        self.find(&prepared.text, &prepared.settings)
    }

    fn find(&mut self, text: &[u8], settings: &Arc<Settings>) -> Option<&mut KnownStatement> {
        self.clock += 1;
        let known = self.all.get_mut(text)?;
        let one = known.iter_mut().find(|one| one.settings == *settings)?;
        one.used = self.clock;
        Some(one)
    }

    /// The server's reply to PREPARE of this statement, if no change was seen since that makes it void.
    pub(super) fn description(&mut self, prepared: &PreparedStatement, changes: u32) -> Option<&[u8]> {
        let one = self.find(&prepared.text, &prepared.settings)?;
        let (reply, counted) = &one.description;
        (*counted == changes && !reply.is_empty()).then_some(reply)
    }

    /// Keeps the server's reply to PREPARE of a statement.
    pub(super) fn describe(&mut self, (text, settings): (&[u8], &Arc<Settings>), reply: &[u8], changes: u32) {
        let Some(one) = self.find(text, settings) else {
            return;
        };
        let before = std::mem::replace(&mut one.description, (reply.into(), changes));
        self.bytes = self.bytes + reply.len() - before.0.len();
    }

    /// The server has said that the columns of a statement are not those that it has described.
    pub(super) fn forget_description(&mut self, prepared: &PreparedStatement) {
        if let Some(one) = self.find(&prepared.text, &prepared.settings) {
            let (reply, _) = take(&mut one.description);
            self.bytes -= reply.len();
        }
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
        let is_full = |known: &Self| {
            let most = known.most_shared.unwrap_or(u32::MAX);
            known.count >= MOST || known.bytes >= MOST_BYTES || known.shared.get() >= most
        };
        while is_full(self)
            && let Some(oldest) = self.remove_oldest()
        {
            closed.push(oldest);
        }
        let one = KnownStatement {
            number,
            parameters,
            types: Vec::new(),
            is_open: false,
            description: Default::default(),
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
                self.shared.raise();
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
        self.shared.lower(1);
        Some(number)
    }

    /// The server has forgotten all of them.
    pub(super) fn forget_all(&mut self) {
        self.all.clear();
        self.shared.lower(take(&mut self.count) as u32);
        self.bytes = 0;
    }

    /// Bytes of memory that they take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }
}

/// The connection has ended.
impl Drop for KnownStatements {
    fn drop(&mut self) {
        self.forget_all();
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
            before + "SELECT 1024".len() - "SELECT 1".len() + 14
        );
        assert!(known.get(&all[1]).is_none() && known.get(&all[0]).is_some());
        assert_eq!(known.count, MOST);
    }

    #[test]
    fn statements_of_all_connections_are_bounded_together() {
        let (settings, count) = (Arc::default(), SharedCount::default());
        let mut all = [KnownStatements::default(), KnownStatements::default()];
        for known in &mut all {
            known.share(&count);
            known.limit(Some(10));
        }
        let texts: Vec<_> = (0..20)
            .map(|number| prepared(&format!("SELECT {number}"), &settings))
            .collect();
        for (number, one) in texts.iter().enumerate() {
            all[number % 2].add((&one.text, &settings), number as u32, 0);
        }
        assert_eq!((count.get(), all[0].count + all[1].count), (8, 8));
        all[0].forget_all();
        assert_eq!(count.get() as usize, all[1].count);
        drop(all);
        assert_eq!(count.get(), 0);
    }

    #[test]
    fn a_description_is_void_when_a_schema_has_changed_or_the_server_says_so() {
        let settings = Arc::default();
        let mut known = KnownStatements::default();
        let one = prepared("SELECT 1", &settings);
        let key = (&one.text[..], &settings);
        known.describe(key, b"reply", 7);
        assert_eq!(known.description(&one, 7), None, "it is not prepared");
        known.add((&one.text, &settings), 1, 0);
        let before = known.memory();
        known.describe(key, b"reply", 7);
        assert_eq!(known.description(&one, 7), Some(&b"reply"[..]));
        assert_eq!(known.description(&one, 8), None);
        known.forget_description(&one);
        assert_eq!(known.description(&one, 7), None);
        assert_eq!(known.memory(), before);
    }
}
