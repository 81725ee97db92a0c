//! Keys for the channels between peers: an authority, and certificates that it signs.
//!
//! * `authority`: the authority
//! * `files`: keys in a folder
//! * `bundle`: keys in a Secret, and what is due with them; `secret`: the Secret at the API server

mod authority;
mod bundle;
mod files;
mod secret;

pub use self::{
    bundle::{BadKeys, Due},
    files::{KeysError, make_keys},
    secret::{SecretError, keep_keys},
};
