//! The part of memcached's text protocol that a measuring client and a stand-in server need.
//!
//! It is separate from the product's codec on purpose: a judge that shares the code which it judges shares
//! its errors.

pub(crate) mod reply;
pub(crate) mod request;
mod server;

pub(crate) use server::Conversation;
