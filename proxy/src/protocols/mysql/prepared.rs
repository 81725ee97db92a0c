//! Statements that a client has prepared. Their numbers are the proxy's own, and each connection to a server
//! prepares a statement when it is first executed there.
//!
//! Invariant: a statement is prepared in the state of the session in which its client has prepared it, on
//! whichever connection.

use std::{collections::BTreeMap, sync::Arc};

use proxima_wire::mysql::{Header, sql::Statement};

use super::settings::Settings;

/// The most statements of a client, as servers have it for all of theirs, and the most bytes of their texts.
pub(super) const MOST: usize = 16_382;
const MOST_BYTES: usize = 16 << 20;

/// The number that stands for the statement that was prepared last.
const LAST: u32 = u32::MAX;

/// Bytes of EXECUTE before the parameters: a header, the command, a number, flags, and a count.
const EXECUTE_HEAD: usize = Header::LEN + 10;

/// A statement that a client has prepared.
pub(super) struct PreparedStatement {
    /// Its text.
    pub(super) text: Arc<[u8]>,
    /// The state of the session in which it was prepared.
    pub(super) settings: Arc<Settings>,
    /// Its effects.
    pub(super) statement: Statement,
    /// The number of its parameters.
    pub(super) parameters: u16,
    /// The types of the parameters, two bytes for each, as the client has told them last.
    pub(super) types: Vec<u8>,
    /// A server keeps a cursor of it, or parts of parameters.
    pub(super) is_open: bool,
}

impl PreparedStatement {
    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.text.len() + self.settings.memory() + self.types.capacity()
    }
}

/// All statements of a client, by number.
#[derive(Default)]
pub(super) struct PreparedStatements {
    all: BTreeMap<u32, PreparedStatement>,
    last: u32,
    /// Bytes of all texts.
    texts: usize,
    /// Bytes of all that is kept of them.
    bytes: usize,
    /// The number of statements for which a server keeps something.
    open: u32,
}

impl PreparedStatements {
    /// Is there room for one more with this text?
    pub(super) fn has_room(&self, text: &[u8]) -> bool {
        self.all.len() < MOST && self.texts + text.len() <= MOST_BYTES
    }

    /// The number that the next statement gets.
    pub(super) fn next(&self) -> u32 {
        // Number 0 is not valid, and the last stands for another.
        let mut next = self.last.wrapping_add(1);
        while next == 0 || next == LAST || self.all.contains_key(&next) {
            next = next.wrapping_add(1);
        }
        next
    }

    /// The number of the statement that was added last.
    pub(super) const fn last(&self) -> u32 {
        self.last
    }

    /// Adds a statement, which gets the [next](Self::next) number.
    pub(super) fn add(&mut self, prepared: PreparedStatement) {
        self.last = self.next();
        self.texts += prepared.text.len();
        self.bytes += prepared.memory();
        self.all.insert(self.last, prepared);
    }

    /// The statement with this number.
    pub(super) fn get(&self, number: u32) -> Option<&PreparedStatement> {
        self.all.get(&self.resolved(number))
    }

    /// Notes what EXECUTE says of the statement: types of parameters, and whether a cursor is opened.
    pub(super) fn note_execute(&mut self, number: u32, message: &[u8]) {
        let number = self.resolved(number);
        let Some(prepared) = self.all.get_mut(&number) else {
            return;
        };
        if let Some(types) = types(message, prepared.parameters)
            && prepared.types != types
        {
            self.bytes -= prepared.memory();
            prepared.types = types.to_vec();
            self.bytes += prepared.memory();
        }
        self.set_open(number, opens_cursor(message));
    }

    /// Notes whether a server keeps something of the statement with this number.
    pub(super) fn set_open(&mut self, number: u32, is_open: bool) {
        let number = self.resolved(number);
        if let Some(prepared) = self.all.get_mut(&number) {
            self.open = self.open + u32::from(is_open) - u32::from(prepared.is_open);
            prepared.is_open = is_open;
        }
    }

    /// Does a server keep something of any statement?
    pub(super) const fn is_any_open(&self) -> bool {
        self.open > 0
    }

    /// Forgets the statement with this number.
    pub(super) fn remove(&mut self, number: u32) {
        self.set_open(number, false);
        if let Some(prepared) = self.all.remove(&self.resolved(number)) {
            self.texts -= prepared.text.len();
            self.bytes -= prepared.memory();
        }
    }

    /// Bytes of memory that they take.
    pub(super) fn memory(&self) -> usize {
        self.bytes + self.all.len() * size_of::<u32>()
    }

    const fn resolved(&self, number: u32) -> u32 {
        if number == LAST { self.last } else { number }
    }
}

/// Does EXECUTE ask for a cursor?
pub(super) fn opens_cursor(message: &[u8]) -> bool {
    message.get(Header::LEN + 5).is_some_and(|&flags| flags != 0)
}

/// The position in EXECUTE of the flag for the types of so many parameters.
fn flag_at(parameters: u16) -> usize {
    EXECUTE_HEAD + usize::from(parameters).div_ceil(8)
}

/// The types of parameters that EXECUTE tells; `None` if it tells no types.
fn types(message: &[u8], parameters: u16) -> Option<&[u8]> {
    let flag = flag_at(parameters);
    if parameters == 0 || message.get(flag) != Some(&1) {
        return None;
    }
    message.get(flag + 1..flag + 1 + 2 * usize::from(parameters))
}

/// Appends EXECUTE for the server's number of the statement, with the types of its parameters if the server
/// does not know them and the message does not tell them. `message` may be the head of one that goes on.
/// Returns `false` if that is not possible.
#[must_use]
pub(super) fn append_execute(
    message: &[u8],
    number: u32,
    parameters: u16,
    missing: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> bool {
    let flag = flag_at(parameters);
    let (Some(header), Some(flags)) = (message.first_chunk(), message.get(9..)) else {
        return false;
    };
    let header = Header::of(*header);
    let added = missing.filter(|_| parameters > 0 && message.get(flag) == Some(&0));
    let len = header.len + added.map_or(0, |types| types.len() as u32);
    if len >= proxima_wire::mysql::LARGEST_PACKET && added.is_some() {
        return false;
    }
    out.extend_from_slice(&Header { len, ..header }.bytes());
    out.push(message[Header::LEN]);
    out.extend_from_slice(&number.to_le_bytes());
    match added {
        None => out.extend_from_slice(flags),
        Some(types) => {
            out.extend_from_slice(&message[9..flag]);
            out.push(1);
            out.extend_from_slice(types);
            out.extend_from_slice(&message[flag + 1..]);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> PreparedStatement {
        PreparedStatement {
            text: text.as_bytes().into(),
            settings: Arc::default(),
            statement: Statement::UNKNOWN,
            parameters: 2,
            types: Vec::new(),
            is_open: false,
        }
    }

    /// EXECUTE of two parameters, of which the first is NULL.
    fn execute(types: Option<[u8; 4]>) -> Vec<u8> {
        let mut payload = vec![0x17, 9, 9, 9, 9, 0, 1, 0, 0, 0, 0b01];
        match types {
            Some(types) => {
                payload.push(1);
                payload.extend_from_slice(&types);
            }
            None => payload.push(0),
        }
        payload.push(42);
        let mut message = Vec::new();
        proxima_wire::mysql::append_packet(0, &mut message, |out| out.extend_from_slice(&payload));
        message
    }

    #[test]
    fn numbers_are_never_those_of_statements_that_are_there() {
        let mut all = PreparedStatements::default();
        for number in 1..4 {
            assert_eq!(all.next(), number);
            all.add(prepared("SELECT ?, ?"));
        }
        all.remove(3);
        assert_eq!(
            (all.next(), all.get(3).is_none(), all.get(LAST).is_none()),
            (4, true, true)
        );
        all.last = u32::MAX - 1;
        assert_eq!(all.next(), 3, "neither the last number nor 0, 1 and 2");
    }

    #[test]
    fn what_a_server_keeps_is_counted_once_for_each_statement() {
        let mut all = PreparedStatements::default();
        all.add(prepared("SELECT 1"));
        all.set_open(1, true);
        all.set_open(LAST, true);
        assert!(all.is_any_open());
        let before = all.memory();
        all.note_execute(1, &execute(Some([3, 0, 8, 0])));
        assert_eq!(all.memory(), before + 4);
        all.remove(1);
        assert!(!all.is_any_open());
        assert_eq!((all.memory(), all.texts), (0, 0));
    }

    #[test]
    fn types_that_a_server_does_not_know_are_told() {
        let types = [3, 0, 8, 0];
        let mut all = PreparedStatements::default();
        all.add(prepared("SELECT ?, ?"));
        all.note_execute(1, &execute(Some(types)));
        assert_eq!(all.get(1).unwrap().types, types);
        all.note_execute(1, &execute(None));
        assert_eq!(all.get(1).unwrap().types, types);
        for (message, missing, expected) in [
            (execute(None), Some(&types[..]), execute(Some(types))),
            (execute(None), None, execute(None)),
            (
                execute(Some(types)),
                Some(&[1, 1, 1, 1][..]),
                execute(Some(types)),
            ),
        ] {
            let mut out = Vec::new();
            assert!(append_execute(&message, 7, 2, missing, &mut out));
            let mut expected = expected;
            expected[5..9].copy_from_slice(&7_u32.to_le_bytes());
            assert_eq!(out, expected);
        }
        assert!(!append_execute(b"\x01", 7, 2, None, &mut Vec::new()));
    }
}
