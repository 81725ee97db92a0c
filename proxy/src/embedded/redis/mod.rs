//! Redis in this process: one request in, the bytes that a Redis server would answer out.
//!
//! ```text
//! answer ─┬─ get          GET MGET GETDEL GETEX
//!         ├─ set          SET SETNX SETEX PSETEX GETSET       options   what SET and GETEX may ask for
//!         ├─ set_many     MSET MSETNX
//!         ├─ range        STRLEN GETRANGE SUBSTR SETRANGE APPEND
//!         ├─ arithmetic   INCR INCRBY DECR DECRBY
//!         ├─ expiry       EXPIRE and its kin, TTL and its kin, PERSIST
//!         ├─ keys         DEL UNLINK EXISTS TOUCH TYPE RANDOMKEY DBSIZE FLUSHDB FLUSHALL
//!         └─ scan         SCAN
//! ```
//!
//! The session answers commands about the connection (`PING`, `HELLO`, `CLIENT`, …). Every other command is
//! rejected by its name.
//!
//! It differs from Redis on purpose:
//! * a value with its key may have as many bytes as an item of the store, 1 MiB by default;
//! * commands with several keys act on one key after the other; only `MSETNX` acts on all in one step;
//! * an expiry time is at most 557 years after the start of the process;
//! * `SCAN` looks at a bounded part of the store in one call, whatever `COUNT` says, and `DBSIZE` does not
//!   count what was evicted.

mod arithmetic;
mod call;
mod expiry;
mod get;
mod keys;
mod likely_key;
mod moment;
mod options;
mod range;
mod reply;
mod scan;
mod set;
mod set_many;

use proxima_wire::{
    message::{Outcome, Reply, Request},
    resp::{self, Command, TRANSACTION},
};

use self::call::Call;
pub(super) use self::likely_key::{is_likely_read, likely_key};
use super::Context;
use crate::embedded::store::Store;

/// Appends the reply to a command.
type Handler = fn(&Call<'_>, &mut Vec<u8>) -> Outcome;

/// The commands that are served.
const SERVED: [(&str, Handler); 39] = [
    ("append", range::append),
    ("dbsize", keys::dbsize),
    ("decr", arithmetic::decr),
    ("decrby", arithmetic::decrby),
    ("del", keys::del),
    ("exists", keys::exists),
    ("expire", expiry::expire),
    ("expireat", expiry::expireat),
    ("expiretime", expiry::expiretime),
    ("flushall", keys::flush),
    ("flushdb", keys::flush),
    ("get", get::get),
    ("getdel", get::getdel),
    ("getex", get::getex),
    ("getrange", range::getrange),
    ("getset", set::getset),
    ("incr", arithmetic::incr),
    ("incrby", arithmetic::incrby),
    ("mget", get::mget),
    ("mset", set_many::mset),
    ("msetnx", set_many::msetnx),
    ("persist", expiry::persist),
    ("pexpire", expiry::pexpire),
    ("pexpireat", expiry::pexpireat),
    ("pexpiretime", expiry::pexpiretime),
    ("psetex", set::psetex),
    ("pttl", expiry::pttl),
    ("randomkey", keys::randomkey),
    ("scan", scan::scan),
    ("set", set::set),
    ("setex", set::setex),
    ("setnx", set::setnx),
    ("setrange", range::setrange),
    ("strlen", range::strlen),
    ("substr", range::getrange),
    ("touch", keys::touch),
    ("ttl", expiry::ttl),
    ("type", keys::type_of),
    ("unlink", keys::del),
];

/// The handler of each command by its number; `None`: the command is rejected.
static HANDLERS: [Option<Handler>; Command::COUNT as usize] = {
    let names = Command::names();
    let mut handlers: [Option<Handler>; Command::COUNT as usize] = [None; Command::COUNT as usize];
    let mut row = 0;
    while row < SERVED.len() {
        let mut number = 0;
        // An unknown name does not compile: the index runs out of bounds.
        while !is_same(names[number].as_bytes(), SERVED[row].0.as_bytes()) {
            number += 1;
        }
        handlers[number] = Some(SERVED[row].1);
        row += 1;
    }
    handlers
};

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// See [`super::answer`].
pub(super) fn answer(
    store: &Store,
    context: &Context<'_>,
    form: u16,
    (request, message): (&Request, &[u8]),
    out: &mut Vec<u8>,
) -> Reply {
    let handler = HANDLERS.get(usize::from(request.command)).copied().flatten();
    let outcome = match handler {
        Some(handler) => {
            let call = Call {
                store,
                command: request.command,
                key: request.key.of(message),
                message,
                now: context.now,
                begun: context.begun,
                form,
                largest_reply: context.largest_reply,
            };
            handler(&call, out)
        }
        None => reject(request, message, out),
    };
    Reply::new(outcome, out.len())
}

/// Rejects a command by its name. A whole transaction gets an error for each of its commands.
fn reject(request: &Request, message: &[u8], out: &mut Vec<u8>) -> Outcome {
    let mut one = |name: &str| {
        let name = name.replace('|', " ").to_uppercase();
        reply::error(
            out,
            &format!("{name} is not served by the embedded store, which has strings and their expiry"),
        )
    };
    let name = |number| Command::of(number).map_or("this", |command| command.name);
    if request.command < TRANSACTION {
        return one(name(request.command));
    }
    one("multi");
    resp::commands(message).for_each(|(_, inner)| {
        one(name(resp::find(inner).0));
    });
    one("exec")
}

/// See [`super::out_of_memory`].
pub(super) fn out_of_memory(out: &mut Vec<u8>) -> Reply {
    let outcome = reply::no_memory(out);
    Reply::new(outcome, out.len())
}
