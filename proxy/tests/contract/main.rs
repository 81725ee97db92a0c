//! What Redis, MySQL and TLS will ask of lanes and sessions, asked today by a small protocol of our own: a server that
//! speaks first, a login, replies of many parts and within replies, requests of many lines and without a reply, messages that
//! nobody asked for, pools that know which server has a key, and a transform between socket and protocol. A real server and real clients, on both back ends.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod client;
mod conversation;
mod dedicated;
mod dialect;
mod joins;
mod logins;
mod pools;
mod protocols;
mod proxy;
mod replies;
mod scramble;
mod server;
mod sessions;
mod upgrades;
