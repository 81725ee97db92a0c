//! # Proxima: reads from the nearest copy, and never a stale one
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]
#![deny(unsafe_code)]

pub mod admin;
pub mod cli;
pub mod client;
pub mod config;
pub mod control;
pub mod dialect;
pub mod engine;
pub mod figures;
pub mod members;
pub mod near;
pub mod reactor;
pub mod route;
pub mod stream;
pub mod timer;
pub mod upstream;
pub mod worker;
