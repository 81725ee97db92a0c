//! Orders for pools: one place for every such state, each with its end.
//!
//! ```text
//!  admin port ─▶ Orders ─▶ flags of the member or the pool ─▶ workers' choices, the pool's state
//!                   │  └─▶ Order::Close ─▶ workers close what is idle, and say when nothing is left
//!                   └─ its end: a time, a word, or the member or pool has left
//! ```
//!
//! * `standing`: what a person orders; `by_hand`: how that is carried out
//! * `client`: the whole wish of a client that orders the same at several proxies, which ends by itself, so that
//!   nothing stays behind one that has gone; `by_client`: how that is carried out
//! * `book`: all that are in force, and what follows from them together

mod book;
mod by_client;
mod by_hand;
mod client;
mod error;
mod standing;

pub(in crate::control) use self::book::Orders;
pub use self::{
    by_client::JointStatus,
    client::{ClientOrder, ClientWish, LONGEST_ORDER},
    error::OrderError,
    standing::{OrderKind, StandingOrder},
};
