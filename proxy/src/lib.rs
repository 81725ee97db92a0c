//! # Proxima: reads from the nearest copy, and never a stale one
//!
//! A request meets the parts in this order:
//!
//! ```text
//!             bytes                request                  request
//!  client ─▶ reactor ─▶ worker ─▶ client ─────▶ route ─────────────▶ upstream ─▶ reactor ─▶ server
//!            sockets    a thread  session:      tree: which          a lane to
//!                       with an   finds them,   members? how do      one member,
//!                       engine    keeps order   replies combine?     shared by clients
//!                                    │             ├─ embedded answers in this process
//!                                  protocol        ├─ copies   of replicated pools: read, written, repaired
//!                                  what a          │   └─ peers  other proxies with copies, by the rules of fleet
//!                                  protocol says   ├─ members  who is up, and near
//!                                                  └─ spool    deletes that a server has not taken
//!
//!  cli ─▶ frontdoor ─▶ config ─▶ control ─▶ trees for the workers          admin ─▶ operators
//!  options and files become one checked configuration; the control thread serves no request
//! ```
//!
//! A part may use the parts on the lines below its own. Parts with a `+` between them may also use each
//! other. A test (`tests/layout.rs`) holds the code to this.
//!
//! ```text
//! cli
//! control + admin
//! worker
//! engine + client + route + copies + upstream + peers
//! frontdoor  metrics
//! embedded  members  stream  fleet  spool
//! near  protocols  tls
//! config  protocol  event_log  micros  random  reactor  table
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]
#![deny(unsafe_code)]

pub mod cli;

pub mod admin;
pub mod control;

pub mod worker;

pub mod client;
pub mod copies;
pub mod engine;
pub mod peers;
pub mod route;
pub mod upstream;

pub mod frontdoor;
pub mod metrics;

pub mod embedded;
pub mod members;
pub mod near;
pub mod protocols;
pub mod spool;
pub mod stream;
pub mod table;
pub mod tls;

pub mod config;
pub mod event_log;
pub mod fleet;
pub mod micros;
pub mod protocol;
mod queue;
pub mod random;
pub mod reactor;
mod size_class;
