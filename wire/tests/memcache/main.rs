//! The memcached codec, checked with tables, recorded captures, random bytes, and a real memcached.
#![allow(clippy::disallowed_methods)]

mod capture;
mod captures;
mod differ;
mod live;
mod replies;
mod requests;
mod rewrites;
mod rows;
mod session;
mod split;
