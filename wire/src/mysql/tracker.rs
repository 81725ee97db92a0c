//! The session's state as an OK packet tells it.

use super::{
    Fault,
    bytes::{Fields, append_string},
};

const NAME: &str = "list of session trackers";

/// One change of the session's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracker<'a> {
    /// A system variable has this value now.
    Variable {
        /// Its name in small letters.
        name: &'a [u8],
        /// Its value as text.
        value: &'a [u8],
    },
    /// The default database, empty if there is none.
    Schema(&'a [u8]),
    /// Something has changed, `1`: a user variable, a temporary table, a prepared statement, a role.
    State(&'a [u8]),
    /// The identifier of the transaction that was written.
    Gtids(&'a [u8]),
    /// The statements that would begin the open transaction anew.
    Characteristics(&'a [u8]),
    /// Eight letters about the open transaction, each a letter or `_`.
    Transaction(&'a [u8]),
    /// A tracker that is not known, with its number.
    Other(u8, &'a [u8]),
}

/// The trackers of one OK packet. They have been checked: iterating cannot fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trackers<'a> {
    /// Type and content of each, as in the packet.
    bytes: &'a [u8],
    /// The rest of an entry that names several variables.
    variables: &'a [u8],
}

impl<'a> Trackers<'a> {
    /// The trackers in these bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        let all = Self {
            bytes,
            variables: &[],
        };
        let mut left = all;
        while left.step()?.is_some() {}
        Ok(all)
    }

    /// The bytes of all of them.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn step(&mut self) -> Result<Option<Tracker<'a>>, Fault> {
        loop {
            if !self.variables.is_empty() {
                return self.variable().map(Some);
            }
            if self.bytes.is_empty() {
                return Ok(None);
            }
            let mut fields = Fields::of(self.bytes, NAME);
            let (kind, content) = (fields.u8()?, fields.string()?);
            self.bytes = fields.take_rest();
            if kind != 0 {
                return tracker(kind, content).map(Some);
            }
            self.variables = content;
        }
    }

    fn variable(&mut self) -> Result<Tracker<'a>, Fault> {
        let mut fields = Fields::of(self.variables, NAME);
        let (name, value) = (fields.string()?, fields.string()?);
        self.variables = fields.take_rest();
        Ok(Tracker::Variable { name, value })
    }
}

impl<'a> Iterator for Trackers<'a> {
    type Item = Tracker<'a>;

    fn next(&mut self) -> Option<Tracker<'a>> {
        self.step().ok().flatten()
    }
}

/// Appends that a variable has this value.
pub fn append_variable(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let mut content = Vec::with_capacity(name.len() + value.len() + 18);
    append_string(name, &mut content);
    append_string(value, &mut content);
    out.push(0);
    append_string(&content, out);
}

/// Appends that this is the default database.
pub fn append_schema(schema: &[u8], out: &mut Vec<u8>) {
    let mut content = Vec::with_capacity(schema.len() + 9);
    append_string(schema, &mut content);
    out.push(1);
    append_string(&content, out);
}

/// The tracker of this type, which is not that of variables.
fn tracker(kind: u8, content: &[u8]) -> Result<Tracker<'_>, Fault> {
    let mut fields = Fields::of(content, NAME);
    let tracker = match kind {
        1 => Tracker::Schema(fields.string()?),
        // This one has no length of its own.
        2 => Tracker::State(fields.take_rest()),
        3 => {
            // The first byte tells how the text is written, and has one value only.
            fields.u8()?;
            Tracker::Gtids(fields.string()?)
        }
        4 => Tracker::Characteristics(fields.string()?),
        5 => Tracker::Transaction(fields.string()?),
        _ => Tracker::Other(kind, fields.take_rest()),
    };
    fields.end()?;
    Ok(tracker)
}
