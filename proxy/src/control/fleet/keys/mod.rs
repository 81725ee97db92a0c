//! Keys for the channels between peers: an authority, and certificates that it signs.
//!
//! * `authority`: the authority
//! * `files`: keys in a folder
//! * `bundle`: keys in a Secret, and what is due with them; `secret`: the Secret at the API server
//! * `token`: the token of operators in a Secret

mod authority;
mod bundle;
mod files;
mod secret;
mod token;

pub use self::{
    bundle::{BadKeys, Due},
    files::{KeysError, make_keys},
    secret::{SecretError, keep_keys},
    token::keep_token,
};
