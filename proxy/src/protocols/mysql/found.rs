//! Findings about a text, as its request carries them from reading to planning.

use proxima_wire::{
    message::Request,
    mysql::sql::{Class, Statement},
};

use super::commands;
use crate::protocol::Consistency;

/// The findings about a text in one number: flags, and above them the number of the class.
const READS_SESSION: u32 = 1;
const CHANGES_SESSION: u32 = 2;
const IS_SEVERAL: u32 = 4;
const WAS_READ: u32 = 8;
/// How fresh a read is, in two bits.
const CONSISTENCY: u32 = 4;
const IS_BLIND: u32 = 64;
const CLASS: u32 = 8;

/// The findings about a text, as a request carries them, with the freshness of a read of it. `is_blind`: it
/// waits for nothing at a server, whatever that is told.
pub(super) fn noted(statement: Statement, consistency: Consistency, is_blind: bool) -> u32 {
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    WAS_READ
        | flag(statement.reads_session, READS_SESSION)
        | flag(statement.changes_session, CHANGES_SESSION)
        | flag(statement.is_several, IS_SEVERAL)
        | flag(is_blind, IS_BLIND)
        | (consistency as u32) << CONSISTENCY
        | (u32::from(commands::of_class(statement.class)) << CLASS)
}

/// How fresh this request is, if it reads.
pub(super) fn consistency(request: &Request) -> Consistency {
    let number = (request.key_step >> CONSISTENCY) as usize % Consistency::ALL.len();
    Consistency::ALL[number]
}

/// Does this read wait for nothing at a server, so that a strict one must not go to a reader?
pub(super) fn is_blind(request: &Request) -> bool {
    request.key_step & IS_BLIND != 0
}

/// The findings about the text of this request.
pub(super) fn found(request: &Request) -> Statement {
    let has = |flag: u32| request.key_step & flag != 0;
    let class = Class::ALL.get((request.key_step >> CLASS) as usize);
    let mut statement = match request.key_step {
        // A text that is passed on as it comes is not read.
        0 => Statement::UNKNOWN,
        _ => Statement::of(class.map_or(Class::Unknown, |&(class, _)| class)),
    };
    statement.reads_session = has(READS_SESSION);
    statement.changes_session = has(CHANGES_SESSION);
    statement.is_several = has(IS_SEVERAL);
    statement
}
