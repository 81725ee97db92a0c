//! The near cache in the tree: a node that answers what is kept, fetches once what many miss, and lets
//! everything else pass.
//!
//! ```text
//!  step       on the way down: a hit, a fetch, a wait, or past
//!  fetch      on the way up: what has come is kept and given to all who wait
//!  preload    what the next replies will need is loaded meanwhile
//!  kept_reply a kept reply becomes one reader's own
//!  origin     the same for values that come from an HTTP origin: the way down
//!  value      and the way up
//! ```
//!
//! Invariant: a reader gets a kept reply, or the reply to a request that was sent after it had asked or
//! before any change that it could know of. Invariant: no reader keeps another one from its answer: who
//! leaves, stalls or is slow takes only itself away.

mod fetch;
mod kept_reply;
mod origin;
mod preload;
mod step;
mod value;
