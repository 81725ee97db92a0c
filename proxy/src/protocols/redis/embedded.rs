//! Requests of clients whose listener leads to the embedded store alone.

use proxima_wire::{
    message::Request,
    resp::{Args, Command, Handling, TRANSACTION},
};

use super::{append_error, here};
use crate::protocol::{Plan, Session};

/// Plans a request. What is about the connection is answered here. The store answers everything else, if only
/// with a rejection: no transaction and no subscription ever begins.
pub(super) fn plan(session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
    if request.command >= TRANSACTION {
        return Plan::Route;
    }
    let mut args = Args::of(message);
    let command = Command::of(request.command).filter(|command| command.takes(args.left()));
    let Some(command) = command.filter(|command| command.served != Handling::Container) else {
        here::reject_form(request.command, &mut args, message, out);
        return Plan::Answer;
    };
    match command.served {
        Handling::Here => here::answer(session, command, message, out),
        Handling::Alone if command.name == "info" => Plan::Counters,
        Handling::Alone if command.name == "config|get" => {
            here::instead_of_one(session, command, message, out);
            Plan::Answer
        }
        // Servers confirm a subscription by no reply, so that a route would answer nothing.
        Handling::Channels => {
            let name = command.name.to_uppercase();
            append_error(&format!("ERR {name} is not served by the embedded store"), out);
            Plan::Answer
        }
        _ => Plan::Route,
    }
}
