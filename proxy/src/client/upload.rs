//! Requests too large for a shared lane: passed on as they come.

use std::{rc::Rc, time::Duration};

use proxima_wire::message::{Outcome, Request};

use super::{Part, Upload, Wanted, session::REMOVED};
use crate::{
    dialect::{Failed, Plan},
    engine::{Engine, Peer},
    route::{ReplyTo, Tree, Turn},
};

/// A server that takes an upload this slowly makes its client wait.
pub const HIGH_WATER: usize = 256 * 1024;
/// An upload waits so long for a place, if `limits.write_timeout` is not shorter.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Of what is no value.
const TOO_LARGE: &str = "this request is too large";
/// Bulk lanes of one worker to one member.
pub const BULK_LANES: usize = 4;
/// As many of them take messages as they come. The last one is kept for requests that are here whole: however many clients
/// send or read slowly, such a request waits for servers alone.
pub const STREAMED: usize = BULK_LANES - 1;

/// What has come of a request too large for a shared lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// Its head is on its way, or it is refused.
    Yes,
    /// It waits for a place, and its client is read no further.
    Later,
    /// There will be a place for it when it is here whole.
    Whole,
}

impl Engine {
    /// A request too large for a shared lane: its head is dispatched, its body follows as it comes.
    pub(super) fn begin_upload(
        &mut self,
        index: u32,
        tree: &Rc<Tree>,
        request: &Request,
        rest: &[u8],
    ) -> Begun {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return Begun::Later;
        };
        let is_whole = rest.len() as u64 >= request.len();
        if client.eof && !is_whole {
            // Its rest will never come.
            self.close_client(index, false);
            return Begun::Later;
        }
        let (listener, generation) = (client.listener, client.generation);
        let number = client.number(request.command);
        let Some(root) = tree.root(usize::from(listener)) else {
            client.swallow = request.body;
            self.refuse(index, request, &Failed::here(Outcome::LocalError, REMOVED));
            return Begun::Yes;
        };
        let reach = tree.reach(usize::from(listener));
        let Some(head) = rest.get(..request.head as usize) else {
            return Begun::Later;
        };
        let full = reach.iter().find(|member| {
            self.by_member
                .get(member.id.0 as usize)
                .is_some_and(|lanes| lanes.is_full(is_whole))
        });
        if let Some(member) = full {
            self.by_member[member.id.0 as usize].wanted = Some(self.now);
            if !is_whole && request.len() <= self.client_bytes as u64 {
                return Begun::Whole;
            }
            let most = self.limits.write_timeout.min(LONGEST_WAIT).as_micros() as u64;
            let due = client.place.map_or(self.now + most, |place| place.due);
            if self.now < due {
                let bytes = request.len();
                self.wait_for_place(index, Some(Wanted { due, bytes }));
                return Begun::Later;
            }
            client.swallow = request.body;
            self.wait_for_place(index, None);
            let what = "too many large values are on their way to it";
            self.refuse(
                index,
                request,
                &Failed::at(&member.address, Outcome::Overloaded, what),
            );
            return Begun::Yes;
        }
        self.wait_for_place(index, None);
        self.figures.asked(number);
        let Some(is_dedicated) = self.passes(index, request, rest) else {
            return Begun::Yes;
        };
        let request = &Request {
            is_dedicated,
            ..*request
        };
        let Some(client) = self.clients.get_mut(index as usize) else {
            return Begun::Later;
        };
        let origin = client.origin();
        self.figures.clients.uploads += 1;
        let seq = client
            .slots
            .push(request.command, request.is_quiet, Part::Whole, 0, self.now);
        self.uploads.clear();
        self.turns.clear();
        self.walk(
            tree,
            root,
            origin,
            request,
            head,
            ReplyTo::Client {
                index,
                generation,
                seq,
            },
        );
        let (lanes, turns) = (std::mem::take(&mut self.uploads), self.take_turns());
        for &(lane, lane_generation) in &lanes {
            if let Some(lane) = self.lane(lane, lane_generation) {
                lane.uploading = Some((index, generation));
            }
        }
        if let Some(client) = self.clients.get_mut(index as usize) {
            client.upload = Some(Box::new(Upload {
                remaining: request.body,
                lanes,
                turns,
                due: None,
                tree: Rc::clone(tree),
            }));
        }
        Begun::Yes
    }

    /// Does the session let this upload pass, and on a lane of the client's own? If not, it is answered, and its rest swallowed.
    fn passes(&mut self, index: u32, request: &Request, rest: &[u8]) -> Option<bool> {
        let client = self.clients.get_mut(index as usize)?;
        if !client.plans(request) {
            return Some(false);
        }
        let mut answer = std::mem::take(&mut self.scratch);
        let plan = client
            .dialect
            .plan(&mut client.session, request, rest, &mut answer);
        let generation = client.generation;
        if !self.follow_login(index) {
            self.refuse_login(index);
            return None;
        }
        let client = self.clients.get_mut(index as usize)?;
        client.closing |= plan == Plan::Close;
        let passes = matches!(plan, Plan::Route | Plan::Dedicated).then_some(plan == Plan::Dedicated);
        if passes.is_none() {
            client.swallow = request.body;
        }
        match plan {
            Plan::Route | Plan::Dedicated => {}
            Plan::Close => self.flush_later(Peer::Client { index, generation }),
            Plan::Answer => self.answer_here(index, &answer, request.is_quiet),
            Plan::Refuse(text) => self.object(index, request, &Failed::here(Outcome::LocalError, text)),
            Plan::Broadcast | Plan::Stats => {
                self.refuse(index, request, &Failed::here(Outcome::LocalError, TOO_LARGE));
            }
        }
        answer.clear();
        self.scratch = answer;
        passes
    }

    /// Passes body bytes of an upload on; returns how many. Fewer than all when a server is slow to take them.
    pub(super) fn pass_on(&mut self, index: u32, bytes: &[u8]) -> usize {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return bytes.len();
        };
        let Some(upload) = &mut client.upload else {
            return 0;
        };
        let lanes = &mut self.lanes;
        upload.lanes.retain(|&(lane, generation)| {
            lanes
                .get(lane as usize)
                .is_some_and(|lane| lane.generation == generation)
        });
        let full = upload
            .lanes
            .iter()
            .any(|&(lane, _)| lanes[lane as usize].requests().len() >= HIGH_WATER);
        if full {
            client.stalled = true;
            return 0;
        }
        let open = upload.remaining - u64::from(!upload.turns.is_empty());
        if open == 0 && !bytes.is_empty() {
            return if self.has_turn(index) {
                self.pass_on(index, bytes)
            } else {
                0
            };
        }
        let used = open.min(bytes.len() as u64) as usize;
        upload.remaining -= used as u64;
        let done = upload.remaining == 0;
        let targets = upload.lanes.clone();
        for (lane, generation) in targets {
            if let Some(target) = self.lanes.get_mut(lane as usize) {
                if target.requests().is_empty() {
                    // It has taken all so far: only from now on can it be late.
                    target.active = self.now;
                }
                target.requests().extend_from_slice(&bytes[..used]);
                target.given += used as u64;
                target.pace.moved(used as u64);
                if done {
                    target.uploading = None;
                }
            }
            self.flush_later(Peer::Lane {
                index: lane,
                generation,
            });
            if done {
                self.settle_lane(lane);
            }
        }
        used
    }
}

impl Engine {
    /// Has the time of its last byte come, or is it refused? Else the client waits.
    fn has_turn(&mut self, index: u32) -> bool {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return false;
        };
        let Some(upload) = &mut client.upload else {
            return false;
        };
        let (generation, since) = (client.generation, *upload.due.get_or_insert(self.now));
        let turns = std::mem::take(&mut upload.turns);
        let turn = self.turn((index, generation), &turns, since);
        let Some(client) = self.clients.get_mut(index as usize) else {
            return false;
        };
        match (turn, &mut client.upload) {
            (Turn::Never(text), Some(upload)) => {
                let lanes = std::mem::take(&mut upload.lanes);
                self.drop_upload(lanes, text);
            }
            (Turn::Later, Some(upload)) => {
                upload.turns = turns;
                client.stalled = true;
            }
            _ => {}
        }
        turn != Turn::Later
    }

    /// The servers have a part of a value and wait for the rest: these lanes are of no more use.
    pub(super) fn drop_upload(&mut self, lanes: Vec<(u32, u32)>, text: &str) {
        for (lane, generation) in lanes {
            if self.lane(lane, generation).is_some() {
                self.drop_lane(lane, text);
            }
        }
    }
}
