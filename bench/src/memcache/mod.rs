//! As much of memcached's text protocol as a measuring client and a stand-in server need.
//!
//! Written apart from the product's codec on purpose: a judge that shares the code it judges shares its errors.

pub(crate) mod reply;
pub(crate) mod request;
mod server;

pub(crate) use server::Conversation;
