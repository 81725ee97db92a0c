//! memcached's names of counts of commands.

use proxima_wire::{memcache::Command, message::Outcome};

const GETS: &[Command] = &[
    Command::Get,
    Command::Gets,
    Command::Gat,
    Command::Gats,
    Command::MetaGet,
    Command::LeaseGet,
];
const SETS: &[Command] = &[
    Command::Set,
    Command::Add,
    Command::Replace,
    Command::Append,
    Command::Prepend,
    Command::Cas,
    Command::MetaSet,
    Command::LeaseSet,
];
const DELETES: &[Command] = &[Command::Delete, Command::MetaDelete];

/// Each name counts how often any of these commands ended with any of these outcomes. Exporters derive the
/// plain `set`s from `cmd_set` and the three counts of `cas`.
pub(in crate::client::stats) const ENDINGS: [(&str, &[Command], &[Outcome]); 17] = [
    ("cmd_get", GETS, &[Outcome::Found, Outcome::NotFound]),
    (
        "cmd_set",
        SETS,
        &[
            Outcome::Stored,
            Outcome::NotStored,
            Outcome::Exists,
            Outcome::NotFound,
        ],
    ),
    ("cmd_flush", &[Command::FlushAll], &[Outcome::Ok]),
    (
        "cmd_touch",
        &[Command::Touch],
        &[Outcome::Touched, Outcome::NotFound],
    ),
    ("get_hits", GETS, &[Outcome::Found]),
    ("get_misses", GETS, &[Outcome::NotFound]),
    ("delete_misses", DELETES, &[Outcome::NotFound]),
    ("delete_hits", DELETES, &[Outcome::Deleted]),
    ("incr_misses", &[Command::Incr], &[Outcome::NotFound]),
    ("incr_hits", &[Command::Incr], &[Outcome::Found]),
    ("decr_misses", &[Command::Decr], &[Outcome::NotFound]),
    ("decr_hits", &[Command::Decr], &[Outcome::Found]),
    ("cas_misses", &[Command::Cas], &[Outcome::NotFound]),
    ("cas_hits", &[Command::Cas], &[Outcome::Stored]),
    ("cas_badval", &[Command::Cas], &[Outcome::Exists]),
    ("touch_hits", &[Command::Touch], &[Outcome::Touched]),
    ("touch_misses", &[Command::Touch], &[Outcome::NotFound]),
];
