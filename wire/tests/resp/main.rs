//! The codec of Redis and Valkey, checked with tables, recorded captures and random bytes.
#![allow(clippy::disallowed_methods)]

#[path = "../memcache/capture.rs"]
mod capture;
mod captures;
mod empty;
mod examples;
mod frames;
mod live;
mod near;
mod replies;
mod requests;
#[path = "../memcache/rows.rs"]
mod rows;
mod server;
mod session;
mod split;
