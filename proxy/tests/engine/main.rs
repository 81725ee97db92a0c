//! The engine between bytes and bytes: no socket, no clock, no thread, so that every order of events can be played.

mod aside;
mod attempts;
mod control;
mod copies;
mod decisions;
mod downloads;
mod flushes;
mod gathers;
mod keys;
mod links;
mod orders;
mod pipelines;
mod random;
mod uploads;
mod world;
mod wraps;
