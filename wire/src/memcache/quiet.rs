//! Which replies a quiet request does not want.

use super::Command;
use crate::message::Outcome;

/// Is a reply with this outcome kept from the client that sent a quiet `command`?
///
/// `noreply` silences all. The meta flag `q` silences what its command expects to happen, as memcached 1.6.18 does it:
/// `mg` a miss, `ms` a stored and `md` a deleted item, `ma` a computed value. Errors are always told. (memcached does answer
/// a quiet `ma` that made the item; as the reply does not tell this from a computed value, it is silenced here.)
pub const fn silenced(command: Command, outcome: Outcome) -> bool {
    match command {
        Command::MetaGet => matches!(outcome, Outcome::NotFound),
        Command::MetaSet => matches!(outcome, Outcome::Stored),
        Command::MetaDelete => matches!(outcome, Outcome::Deleted),
        Command::MetaArithmetic => matches!(outcome, Outcome::Found),
        Command::MetaDebug | Command::MetaNoop => false,
        Command::Get
        | Command::Gets
        | Command::Gat
        | Command::Gats
        | Command::Set
        | Command::Add
        | Command::Replace
        | Command::Append
        | Command::Prepend
        | Command::Cas
        | Command::Delete
        | Command::Incr
        | Command::Decr
        | Command::Touch
        | Command::FlushAll
        | Command::Version
        | Command::Verbosity
        | Command::Stats
        | Command::LruCrawler
        | Command::Config
        | Command::Quit
        | Command::Shutdown => true,
    }
}
