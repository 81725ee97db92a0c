//! From the bytes of a peer to frames.

use std::io;

use proxima_wire::fleet::{self, Frame};

use super::{Event, Role};
use crate::engine::{Engine, LinkId, WorkerEvent};

/// The outcome of a frame, for its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameOutcome {
    /// The next frame may be served.
    Done,
    /// The frame waits, with all behind it, until this worker has installed its view.
    Ahead,
    /// No peer sends this here: the link ends.
    Wrong(&'static str),
}

impl Engine {
    /// Takes plain bytes from a peer.
    pub fn link_bytes(&mut self, id: LinkId, bytes: &[u8]) {
        let Some(link) = self.links().and_then(|links| links.get_mut(id)) else {
            return;
        };
        if link.is_ahead || !link.stream.read_buffer.is_empty() {
            link.stream.read_buffer.extend_from_slice(bytes);
            return self.serve_link(id);
        }
        let used = self.frames(id, bytes);
        if let Some(link) = self.links().and_then(|links| links.get_mut(id)) {
            link.stream
                .read_buffer
                .extend_from_slice(bytes.get(used..).unwrap_or_default());
        }
    }

    /// Serves the frames that wait on a link: the view for which they waited may be installed.
    pub(crate) fn serve_link(&mut self, id: LinkId) {
        let Some(link) = self.links().and_then(|links| links.get_mut(id)) else {
            return;
        };
        let mut waiting = std::mem::take(&mut link.stream.read_buffer);
        let used = self.frames(id, &waiting);
        if let Some(link) = self.links().and_then(|links| links.get_mut(id)) {
            waiting.drain(..used);
            link.stream.read_buffer = waiting;
        }
    }

    /// Serves all complete frames. Returns the number of bytes used.
    fn frames(&mut self, id: LinkId, bytes: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let (frame, size) = match fleet::read(rest) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => {
                    self.end_link(id, &error.to_string());
                    return bytes.len();
                }
            };
            let Some(link) = self.links().and_then(|links| links.get(id)) else {
                return bytes.len();
            };
            let (slot, stay, role) = (link.slot, link.stay, link.role);
            let served = match (frame, role) {
                (Frame::Change(change), Role::Keeper { worker }) => {
                    self.keep_change(id, (slot, stay, worker), &change)
                }
                (Frame::Confirm(confirm), Role::Keeper { worker }) => {
                    self.keep_confirmed((slot, stay, worker), confirm)
                }
                (Frame::Ask(ask), Role::Keeper { .. }) => self.serve_ask(id, &ask),
                (Frame::Ack(ack), Role::Coordinator) => self.change_acknowledged((slot, stay), &ack),
                (Frame::Answer(answer), Role::Coordinator) => self.ask_answered((slot, stay), &answer),
                _ => FrameOutcome::Wrong("a frame of the wrong direction"),
            };
            match served {
                FrameOutcome::Done => at += size,
                FrameOutcome::Ahead => {
                    self.pause_link(id, true);
                    return at;
                }
                FrameOutcome::Wrong(why) => {
                    self.end_link(id, why);
                    return bytes.len();
                }
            }
        }
        self.pause_link(id, false);
        at
    }

    /// Pauses reading from a link while its next frame waits: further bytes stay in its socket.
    fn pause_link(&mut self, id: LinkId, is_ahead: bool) {
        let Some(link) = self.links().and_then(|links| links.get_mut(id)) else {
            return;
        };
        link.is_ahead = is_ahead;
        if let Some(conn) = link.stream.conn
            && link.stream.paused != is_ahead
        {
            link.stream.paused = is_ahead;
            self.actions.pause.push((conn, is_ahead));
        }
    }

    /// A link has ended, or is to end.
    pub(crate) fn end_link(&mut self, id: LinkId, why: &str) {
        let Some(link) = self.links().and_then(|links| links.remove(id)) else {
            return;
        };
        if let Some(conn) = link.stream.conn {
            self.actions.close.push((conn, true));
        }
        if link.role == Role::Coordinator {
            self.actions.events.push(WorkerEvent::Peer(Event::Lost {
                worker: self.facts.worker,
                slot: link.slot,
                stay: link.stay,
                why: why.to_owned(),
            }));
            self.asks_lost(link.slot, link.stay);
        }
    }

    /// The connection of a link broke, or its peer closed it.
    pub fn link_failed(&mut self, id: LinkId, error: Option<&io::Error>) {
        let why = error.map_or_else(|| "closed".to_owned(), crate::reactor::reason);
        self.end_link(id, &why);
    }
}
