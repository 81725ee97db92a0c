//! The life of the process: start, what workers tell, signals, end.

mod events;
mod greet;
mod pid_file;
pub(in crate::control) mod run;
pub(in crate::control) mod start;
