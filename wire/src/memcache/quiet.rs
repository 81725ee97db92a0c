//! Replies that a quiet request does not want.

use super::Command;
use super::command::Form;
use crate::message::{Class, Outcome};

/// Whether a reply with this outcome is kept from the client that sent a quiet `command`.
///
/// `noreply` silences all replies. The meta flag `q` silences the expected one, as in memcached 1.6.18: `mg`
/// a miss, `ms` a stored and `md` a deleted item, `ma` a computed value. Errors always reach the client.
/// (memcached does answer a quiet `ma` that made the item. As that reply cannot be told from a computed
/// value, it is silenced here.)
pub const fn silenced(command: Command, outcome: Outcome) -> bool {
    match command.form() {
        Form::Retrieval | Form::Metadata | Form::Text => true,
        Form::Flags => match command.class() {
            Class::Read => matches!(outcome, Outcome::NotFound),
            Class::Write => matches!(outcome, Outcome::Stored),
            Class::Delete => matches!(outcome, Outcome::Deleted),
            Class::Arithmetic => matches!(outcome, Outcome::Found),
            Class::Touch | Class::Admin | Class::Session => false,
        },
        Form::Meta => false,
    }
}
