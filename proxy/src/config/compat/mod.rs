//! Other programs' configurations and command lines.

pub mod mcrouter;
