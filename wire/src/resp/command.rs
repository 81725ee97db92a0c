//! Every command of the supported servers, generated from `commands/redis.tsv` at build time.

use std::ops::Range;

use super::{
    answer::{Answer, ArgumentTest, Case},
    name::place,
};
use crate::message::Class;

/// A command or a subcommand.
#[derive(Debug)]
pub struct Command {
    /// Its name in small letters; of a subcommand `client|setname`.
    pub name: &'static str,
    /// The number of its arguments with its name (and its subcommand's); negative: at least.
    pub arity: i16,
    /// The servers' flags.
    pub flags: &'static [&'static str],
    /// The first key, the last and the step, as `COMMAND` tells them.
    pub positions: [i16; 3],
    /// The positions of its keys.
    pub(super) specs: &'static [Spec],
    /// How it is served.
    pub served: Handling,
    /// Its effect on the data.
    pub class: Class,
    /// Why it is refused, or refused where there are several members.
    pub reason: &'static str,
    /// The numbers of its subcommands.
    subcommands: Range<u16>,
    /// It may wait for others.
    pub is_blocking: bool,
    /// It changes data.
    pub is_write: bool,
    /// Its only key is its first argument, and it names no other key.
    pub(super) has_first_key: bool,
    /// The answer of an empty server.
    pub(super) empty: &'static [Case],
    /// A reply may be kept until its only key changes: it follows from the data of this key alone. Such a
    /// command is of [`Class::Read`].
    ///
    /// The key, or a field of a hash, may also expire. No command says so then.
    pub is_kept: bool,
    /// The data that it changes, on which kept replies depend.
    pub changes: Changes,
}

/// The data that a command changes at the server that runs it: replies that were kept before and depend on it
/// are outdated.
///
/// A command that waits for others, as `BLMOVE`, changes its keys at any time until it is answered. `EXEC`
/// itself changes nothing: each command of the transaction has changes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// No data.
    Nothing,
    /// At most the keys that it names, all of which [`each_key`](super::each_key) gives. Some of them it may
    /// only read.
    Keys,
    /// Any keys, or all of them.
    Everything,
    /// The data that a script changes: by custom the keys that it names, but no server keeps it from changing
    /// others.
    Scripts,
}

/// How a command is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// By the member of its keys.
    Key,
    /// By the member of its key. Other arguments may be patterns for the names of further keys.
    Pattern,
    /// By one command for each member of its keys.
    Split(Combine),
    /// By the proxy.
    Here,
    /// By every member.
    Each(Combine),
    /// By one member after the other.
    Walk,
    /// By the member of its channel, which is a key to the proxy.
    Channel,
    /// By any member, always the same.
    Any,
    /// By the members of its channels, or by every member, on connections of the client's own.
    Channels,
    /// It begins, ends or guards a transaction.
    Transaction,
    /// By the only member.
    Alone,
    /// By the only member, which then keeps a connection for the client alone.
    Own,
    /// Not at all.
    Refused,
    /// It has subcommands, and does nothing by itself.
    Container,
}

/// How the replies of several members become one. An error of one is the reply of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The elements of arrays, in the order of the keys.
    List,
    /// As [`Combine::List`], with two elements for each key.
    Pairs,
    /// The sum of numbers.
    Sum,
    /// All are the same.
    Ok,
    /// The elements of arrays, one member's behind the other's.
    Concat,
    /// As [`Combine::Concat`], with each element once.
    Unite,
    /// The first reply.
    First,
    /// One of the replies that are not null, by chance.
    One,
    /// The elements of arrays, each the least of all members'.
    And,
    /// One reply that is no error.
    Any,
}

/// The positions of some keys of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) begin: Begin,
    pub(super) find: Find,
    /// They are channels.
    pub(super) is_channel: bool,
}

/// The argument with which a search for keys begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin {
    Index(u32),
    /// Behind this word, which is looked for from this argument on; negative: backwards, from the end.
    Keyword(&'static str, i32),
}

/// Which arguments from there on are keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Find {
    /// Up to `last`, negative: counted from the end; `limit` above 1: only this part of the arguments.
    Range { last: i32, step: u32, limit: u32 },
    /// As many as the argument `at` says, from `first` on.
    Number { at: u32, first: u32, step: u32 },
}

include!(concat!(env!("OUT_DIR"), "/commands.rs"));

impl Command {
    /// The number of commands and subcommands.
    pub const COUNT: u16 = COMMANDS.len() as u16;

    /// The names, by number.
    pub const fn names() -> &'static [&'static str; NAMES.len()] {
        &NAMES
    }

    /// The command with this number.
    #[inline]
    pub fn of(number: u16) -> Option<&'static Self> {
        COMMANDS.get(usize::from(number))
    }

    /// The number of the command with this name, in any case.
    #[inline]
    pub fn find(name: &[u8]) -> Option<u16> {
        let number = PLACES[place(name, SEED)];
        let command = Self::of(number)?;
        name.eq_ignore_ascii_case(command.name.as_bytes())
            .then_some(number)
    }

    /// The number of the subcommand with this name, in any case.
    pub fn find_sub(&self, name: &[u8]) -> Option<u16> {
        self.subcommands.clone().find(|&number| {
            let sub = Self::of(number).map_or("", |sub| &sub.name[self.name.len() + 1..]);
            sub.as_bytes().eq_ignore_ascii_case(name)
        })
    }

    /// The numbers of its subcommands.
    pub fn subcommands(&self) -> Range<u16> {
        self.subcommands.clone()
    }

    /// May it have this number of arguments?
    #[inline]
    pub fn takes(&self, args: u32) -> bool {
        let arity = i64::from(self.arity);
        match arity < 0 {
            true => i64::from(args) >= -arity,
            false => i64::from(args) == arity,
        }
    }

    /// Do its channels take the place of keys?
    pub fn is_by_channel(&self) -> bool {
        matches!(self.served, Handling::Channel | Handling::Split(Combine::Pairs))
    }

    /// Has it keys?
    pub fn has_keys(&self) -> bool {
        self.specs.iter().any(|spec| !spec.is_channel)
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Handling};
    use crate::message::Class;

    #[test]
    fn every_name_is_found_in_any_case() {
        for (number, name) in Command::names().iter().enumerate() {
            let found = |name: &str| match name.split_once('|') {
                None => Command::find(name.as_bytes()),
                Some((container, sub)) => {
                    let container = Command::of(Command::find(container.as_bytes())?)?;
                    container.find_sub(sub.as_bytes())
                }
            };
            assert_eq!(found(name), Some(number as u16), "{name}");
            assert_eq!(found(&name.to_uppercase()), Some(number as u16), "{name}");
        }
        for name in [
            "",
            "g",
            "gett",
            "client|setname",
            "\0\0\0",
            "set\0",
            "nosuchcommandatall",
        ] {
            assert_eq!(Command::find(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn a_read_or_write_is_by_one_key_or_planned() {
        for number in 0..Command::COUNT {
            let command = Command::of(number).unwrap();
            let is_walked = matches!(command.class, Class::Read | Class::Write | Class::Delete);
            let by_keys = matches!(
                command.served,
                Handling::Key | Handling::Pattern | Handling::Split(_)
            );
            assert!(!is_walked || by_keys, "{}", command.name);
            assert!(!command.is_blocking || !is_walked, "{}", command.name);
            assert_eq!(
                command.reason.is_empty(),
                !matches!(
                    command.served,
                    Handling::Refused | Handling::Alone | Handling::Own
                ),
                "{}",
                command.name
            );
        }
    }
}
