//! The frames between the proxies of a fleet: changes of copies, their acknowledgements, and requests that a
//! peer answers in another one's place.
//!
//! ```text
//!  4 bytes       1 byte
//! ┌────────────┬────────┬──────────────────────────┐
//! │ length     │ kind   │ body                     │   the length counts kind and body; numbers are
//! └────────────┴────────┴──────────────────────────┘   little-endian
//! ```
//!
//! The end that opened a link is a coordinator: it sends [`Change`], [`Confirm`] and [`Ask`]. The other end
//! is a keeper: it sends [`Ack`] and [`Answer`]. The message of a protocol is inside, untouched.

mod ask;
mod bytes;
mod change;
mod frame;
mod kind;

pub use self::{
    ask::{Answer, AnswerBody, Ask, AskKind},
    change::{Ack, Change, Confirm, Verdict},
    frame::{Frame, FrameError, MESSAGE_LIMIT, read},
};
