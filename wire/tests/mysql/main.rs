//! The codec of MySQL and MariaDB, checked with tables, recorded captures and random bytes.
#![allow(clippy::disallowed_methods)]

#[path = "../memcache/capture.rs"]
mod capture;
mod captures;
mod live;
mod login;
mod packets;
mod passwords;
mod replies;
#[path = "../memcache/rows.rs"]
mod rows;
mod server;
mod session;
mod split;
mod statements;
