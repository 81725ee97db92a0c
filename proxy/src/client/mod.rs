//! The client part accepts clients, finds their requests and gives them their replies in order.
//!
//! In the order in which a client meets them:
//! * `listen`, `open`, `admission`, `register`: it connects, logs in and is counted; `encryption` is by TLS;
//!   `located` says where it is
//! * `connection`, `clients`: one client, and all of them
//! * `session`: from its bytes (`input`) to requests, by stages (`stage`); `request` serves a whole one,
//!   `split` one of many keys as they come, `spread` one whose keys go several ways (`key_groups`),
//!   `everywhere` one without a key, `upload` one that is streamed and waits for a `seat`; `sizes` decide
//!   which, and `errors` are common to all; `prefetch` looks ahead for the store
//! * `slots`: its replies in the order of its requests; `answer` hands them out; `own_lane` is about a lane
//!   that is the client's alone, `subscribe` and `subscriber` about those with its `subscriptions`, `push`
//!   about what comes on them, and `lane_event` about other events there; `stats` answers a protocol's own
//!   command for statistics, and `consult` has the control thread answer
//! * `sessions` counts what binds them, and `session_list` says so of each
//! * `room`: the memory that clients may take; `timeouts`: their time-outs (a server's are in
//!   `upstream/late.rs`); `half_closed`: clients that send no more

mod admission;
mod answer;
mod clients;
mod connection;
mod consult;
mod embedded;
mod encryption;
mod errors;
mod everywhere;
mod half_closed;
mod input;
mod kept_session;
mod key_groups;
mod lane_event;
mod listen;
mod located;
mod open;
mod own_lane;
mod prefetch;
mod push;
mod register;
mod request;
mod room;
mod seat;
mod session;
mod session_list;
mod sessions;
mod sizes;
mod slots;
mod split;
mod spread;
mod stage;
mod stats;
mod subscribe;
mod subscriber;
mod subscriptions;
mod timeouts;
mod upload;

pub(crate) use self::lane_event::LaneEvent;
pub(crate) use self::slots::SharedReply;
pub use self::{
    clients::Clients,
    connection::Client,
    consult::{AnswerSlot, Question},
    listen::{ListenSockets, bind, listen_alone, permit},
    register::{Announcements, Arrival, Register},
    room::LARGE,
    session_list::{SessionFacts, SessionPage, SessionQuery},
    sizes::{HIGH_WATER, WHOLE},
};
use self::{
    room::Room,
    slots::{ReplyRole, Slots},
};
