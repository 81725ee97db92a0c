//! The model of a fleet: three proxies with a copy each and one key, which drive the rules that the proxy
//! follows (`fleet::Keeper`, `Roster`, `View`) through every order of what may happen. Messages between
//! different proxies come in any order, each link keeps its own, and what is under way on a link is
//! lost with it. A proxy may be slow for ever, as every step of it may come last.
//!
//! * `scopes`: what may happen, and is right in every order; `drafts`: one rule left out, and a wrong order
//!   is found
//! * `scope`: the limits of one exploration; `explore`: all states, nearest first
//! * `world`: the state of everything; `step`: what may happen next
//! * `change`: changes of clients and of peers; `stay`: views, and the begin and the end of a stay
//! * `client`: what was acknowledged, and what must not be read afterwards
//! * `leases`: a model of its own, for one lease and two leaders
//! * `proxy`, `link`: one proxy with its copy, and a connection between two
//!
//! Not in the model: several workers of a process, a server that freezes, several keys, the sizes of tables,
//! streamed values, `flush_all`, complaints. Tests that take long without optimisation are left out then:
//! `scripts/model.sh` runs all, and with `PROXIMA_SOAK=1` the largest scopes too.

// It measures how long an exploration takes, and asks the environment for PROXIMA_SOAK.
#![allow(clippy::disallowed_methods)]

mod change;
mod client;
mod drafts;
mod explore;
mod leases;
mod link;
mod proxy;
mod scope;
mod scopes;
mod stay;
mod step;
mod world;
