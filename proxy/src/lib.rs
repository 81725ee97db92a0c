//! # Proxima: reads from the nearest copy, and never a stale one
#![deny(unsafe_code)]

pub mod config;
pub mod reactor;
