//! The meta commands: mg, ms, md, ma, me.

pub(super) mod arithmetic;
pub(super) mod debug;
pub(super) mod delete;
mod flags;
pub(super) mod get;
mod key;
pub(super) mod set;
