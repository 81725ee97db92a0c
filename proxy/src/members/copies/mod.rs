//! Copies of a replicated pool: which may be read, which must be written, what those owe that missed a write.
//!
//! ```text
//!               a write is missed                 all have acknowledged: the debt is noted
//!   current ─────────────────────▶ leaving ─────────────────────────────────────────────▶ out
//!      ▲                                                                                   │ it answers
//!      │ all have acknowledged              its debt is paid                               ▼
//!   opening ◀──────────────────────────────────────────────────────────────────────────  joining
//! ```
//!
//! * `standing`: what a copy may be used for in each of these steps
//! * `agreement`: the one place that decides, as propose and acknowledge; pure, so that its interleavings can be tested
//! * `claims`: one worker at a time changes a key
//! * `view`: what one worker knows of the standings, and what it has seen a copy miss
//! * `debt`: what a copy owes
//! * `payment`: what a debt comes to in which life of the server
//! * `visit`: asks a server who it is, whether our old connections are gone, and pays its debt

mod agreement;
mod claims;
mod debt;
mod payment;
mod standing;
mod view;
pub mod visit;

pub use self::{
    agreement::{Act, Agreement, Snapshot},
    claims::{Claim, Claimant, Claims, Way},
    debt::{Debt, EVERYTHING, NOTHING, Owed},
    payment::{Incarnation, Payment},
    standing::Standing,
    view::Views,
};
