//! The engine between bytes and bytes: no socket, no clock, no thread, so that every order of events can be played.
#![allow(clippy::disallowed_methods)]

mod attempts;
mod bypass;
mod control;
mod copies;
mod decisions;
mod downloads;
mod failures;
mod flushes;
mod gathers;
mod keys;
mod links;
mod near;
mod orders;
mod pipelines;
mod random;
mod undo;
mod uploads;
mod versions;
mod world;
mod wraps;
