//! The life of the process: start, signals, end.

pub(in crate::control) mod greet;
mod pid_file;
pub(in crate::control) mod run;
pub(in crate::control) mod start;
