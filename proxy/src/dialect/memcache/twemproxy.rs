//! The commands that twemproxy takes.

use proxima_wire::{
    memcache::Command,
    message::{Bad, Parsed, Request},
};

/// Whether twemproxy takes this command. Every number is below 64.
const fn is_taken(command: Command) -> bool {
    use Command::*;
    matches!(
        command,
        Get | Gets
            | Set
            | Add
            | Replace
            | Append
            | Prepend
            | Cas
            | Delete
            | Incr
            | Decr
            | Touch
            | Version
            | Quit
    )
}

/// Its commands, a bit for each number.
const TAKEN: u64 = {
    let mut taken = 0;
    let mut number = 0;
    while number < Command::ALL.len() {
        if is_taken(Command::ALL[number]) {
            taken |= 1 << number;
        }
        number += 1;
    }
    taken
};

/// Closes the connection at what twemproxy does not understand.
#[inline]
pub(super) fn restrict(read: Parsed<Request>, all_commands: bool) -> Parsed<Request> {
    match read {
        Parsed::Head(request) if !all_commands && TAKEN >> request.command & 1 == 0 => {
            Parsed::Bad(Bad::fatal(b""))
        }
        Parsed::Bad(bad) => Parsed::Bad(bad.mute()),
        read => read,
    }
}
