//! # Proxima: reads from the nearest copy, and never a stale one
//!
//! The parts in the order in which a request meets them:
//!
//! ```text
//!             bytes                request                  request
//!  client ─▶ reactor ─▶ worker ─▶ client ─────▶ route ─────────────▶ upstream ─▶ reactor ─▶ server
//!            sockets    a thread  session:      tree: which          a lane to
//!                       with an   finds them,   members? how do      one member,
//!                       engine    keeps order   replies combine?     shared by clients
//!                                    │             ├─ near     answers in this process
//!                                  dialect         ├─ copies   of replicated pools: read, written, repaired
//!                                  what a          └─ members  who is up, and near
//!                                  protocol says
//!
//!  cli ─▶ frontdoor ─▶ config ─▶ control ─▶ trees for the workers          admin ─▶ operators
//!  options and files, one checked configuration; the control thread, which serves no request
//! ```
//!
//! Who may use whom: a part uses what stands on lines below its own; only those with a `+` between them use
//! each other, too. A test holds the code to it.
//!
//! ```text
//! cli
//! control + admin
//! worker
//! engine + client + route + copies + upstream
//! frontdoor  metrics
//! near  members  stream
//! config  dialect  micros  reactor  table
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]
#![deny(unsafe_code)]

pub mod cli;

pub mod admin;
pub mod control;

#[allow(missing_docs, reason = "not documented throughout yet")]
pub mod worker;

#[allow(missing_docs, reason = "not documented throughout yet")]
pub mod client;
pub mod copies;
#[allow(missing_docs, reason = "not documented throughout yet")]
pub mod engine;
pub mod route;
pub mod upstream;

pub mod frontdoor;
#[allow(missing_docs, reason = "not documented throughout yet")]
pub mod metrics;

pub mod members;
pub mod near;
#[allow(missing_docs, reason = "not documented throughout yet")]
pub mod stream;
pub mod table;

pub mod config;
pub mod dialect;
pub mod micros;
pub mod reactor;
