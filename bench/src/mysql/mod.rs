//! The part of MySQL's protocol that a measuring client and a stand-in server need.
//!
//! Packets and results are separate from the product's codec on purpose: a judge that shares the code which
//! it judges shares its errors. Only logins, which no figure is about, are read and written by that codec.

pub(crate) mod account;
mod answer;
mod client;
mod login;
mod node;
pub(crate) mod packet;
pub(crate) mod reply;
pub(crate) mod request;
mod result_set;
pub(crate) mod rows;
mod server;
pub(crate) mod statement_reply;
mod statements;
mod table;
pub(crate) mod transaction;

pub(crate) use client::log_in;
pub(crate) use login::{COMMON, Login};
pub(crate) use server::Conversation;
pub(crate) use statements::Statements;
pub(crate) use table::fill;
