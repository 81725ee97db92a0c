//! The memcached codec against tables, recorded captures, chance, and a real memcached.
#![allow(clippy::disallowed_methods)]

mod capture;
mod captures;
mod differ;
mod live;
mod replies;
mod requests;
mod rewrites;
mod session;
mod split;
