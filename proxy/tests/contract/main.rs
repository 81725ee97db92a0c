//! A small test protocol asks of lanes and sessions what Redis, MySQL and TLS will need: a server that speaks
//! first, a login, replies of many parts and nested replies, requests of many lines and without a reply,
//! pushes, pools that know which server has a key, and a transform between socket and protocol. Real servers
//! and real clients use it, on both back ends.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod admission;
mod awaited;
mod cancel;
mod client;
mod closing;
mod conversation;
mod dedicated;
mod fitted;
mod greetings;
mod joins;
mod lane;
mod leaving;
mod lines;
mod logins;
mod outliving;
mod pools;
mod protocols;
mod proxy;
mod replies;
mod roles;
mod scramble;
mod server;
mod sessions;
mod statements;
mod tls;
mod upgrades;
mod words;
