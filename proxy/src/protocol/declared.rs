//! What the configuration declares of requests: commands that the codec's tables do not know, and how fresh
//! reads are.

use std::collections::HashMap;

use proxima_wire::message::Class;

use super::ConsistencyByLogin;

/// A command that the configuration declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandDeclaration {
    /// The number of its words with its name; negative: at least.
    pub arity: i32,
    /// The positions of its first key, of its last, and the step between keys. A negative last one is counted
    /// from the end; without keys all are 0.
    pub keys: [i32; 3],
    /// Its effect on the data.
    pub class: Class,
}

/// Declared commands by their names in small letters.
pub type DeclaredCommands = HashMap<Vec<u8>, CommandDeclaration>;

/// What is declared for the clients of a listener, before their requests walk its routes.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    /// The commands.
    pub commands: &'a DeclaredCommands,
    /// How fresh reads are by the routes; `None`: no route says it.
    pub consistency: Option<&'a dyn ConsistencyByLogin>,
}
