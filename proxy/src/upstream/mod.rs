//! Connections to servers: lanes.
//!
//! A *shared* lane carries complete requests of many clients, pipelined: its queue says where each reply
//! goes. A *bulk* lane carries one message at a time, as it comes. A *dedicated* lane belongs to one client
//! (`lanes/dedicated.rs`); clients that find none free wait in turn (`lanes/queue.rs`).
//!
//! A lane whose server announces a large reply becomes the bulk lane of the client that asked, if no other
//! request waits behind the reply and there is a seat. Otherwise the reply is buffered, and the requests
//! behind it do not wait for a slow reader. A slow reader delays them by at most half the time-out
//! (`pause.rs`). A large message that hardly moves loses its seat when others want it (`pace.rs`).
//!
//! `lane/` is one connection with its state, `lanes/` are those of one member by their kinds, and `servers`
//! all of a worker. The other files are the life of a lane: it is opened and logs in, is given requests,
//! receives replies, is late or paused, and ends.

mod again;
mod arrival;
mod askers;
mod cancel;
mod change_login;
mod changes;
mod download;
mod end;
mod fit;
mod lane;
mod lane_facts;
mod lanes;
mod late;
mod limited;
mod login;
mod logins;
mod open;
mod own;
mod pace;
mod pause;
mod proof;
mod push;
mod receive;
mod send;
mod sent;
mod servers;

pub(crate) use self::lanes::{ELSEWHERE, LanePurpose};
use self::{
    askers::{Asker, Askers},
    end::UNREPAIRED,
    lane::{
        Arrival, Download, Effects, Pace, PauseTime, Phase, Proof, Proofs, Trial, Unwritten, Uptake, Waiter,
    },
    lanes::{Cancel, Closing, Lanes},
    limited::Unfit,
    logins::Logins,
    send::LANE_BYTES,
};
pub use self::{
    lane::{Close, Closed, Lane},
    lane_facts::LaneFacts,
    lanes::{BULK_LANES, STREAMED},
    servers::Servers,
};
