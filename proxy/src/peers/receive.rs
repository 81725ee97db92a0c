//! From the bytes of a peer to frames.

use std::io;

use proxima_wire::fleet::{self, Frame};

use super::{Event, Role};
use crate::engine::{ChannelId, Engine, WorkerEvent};

/// What a frame leaves to its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// The next frame may be served.
    Done,
    /// The frame waits, with all behind it, until this worker has installed its view.
    Ahead,
    /// No peer sends this here: the channel ends.
    Wrong(&'static str),
}

impl Engine {
    /// Takes plain bytes from a peer.
    pub fn channel_bytes(&mut self, id: ChannelId, bytes: &[u8]) {
        let Some(channel) = self.channels().and_then(|channels| channels.get_mut(id)) else {
            return;
        };
        if channel.is_ahead || !channel.stream.read_buffer.is_empty() {
            channel.stream.read_buffer.extend_from_slice(bytes);
            return self.serve_channel(id);
        }
        let used = self.frames(id, bytes);
        if let Some(channel) = self.channels().and_then(|channels| channels.get_mut(id)) {
            channel
                .stream
                .read_buffer
                .extend_from_slice(bytes.get(used..).unwrap_or_default());
        }
    }

    /// Serves the frames that wait on a channel: the view may be there that they waited for.
    pub(crate) fn serve_channel(&mut self, id: ChannelId) {
        let Some(channel) = self.channels().and_then(|channels| channels.get_mut(id)) else {
            return;
        };
        let mut waiting = std::mem::take(&mut channel.stream.read_buffer);
        let used = self.frames(id, &waiting);
        if let Some(channel) = self.channels().and_then(|channels| channels.get_mut(id)) {
            waiting.drain(..used);
            channel.stream.read_buffer = waiting;
        }
    }

    /// Serves all complete frames. Returns the number of bytes used.
    fn frames(&mut self, id: ChannelId, bytes: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let (frame, size) = match fleet::read(rest) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => {
                    self.end_channel(id, &error.to_string());
                    return bytes.len();
                }
            };
            let Some(channel) = self.channels().and_then(|channels| channels.get(id)) else {
                return bytes.len();
            };
            let (slot, stay, role) = (channel.slot, channel.stay, channel.role);
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
                _ => Served::Wrong("a frame of the wrong direction"),
            };
            match served {
                Served::Done => at += size,
                Served::Ahead => {
                    self.hold_channel(id, true);
                    return at;
                }
                Served::Wrong(why) => {
                    self.end_channel(id, why);
                    return bytes.len();
                }
            }
        }
        self.hold_channel(id, false);
        at
    }

    /// Holds the bytes of a channel back in its socket while its next frame waits.
    fn hold_channel(&mut self, id: ChannelId, is_ahead: bool) {
        let Some(channel) = self.channels().and_then(|channels| channels.get_mut(id)) else {
            return;
        };
        channel.is_ahead = is_ahead;
        if let Some(conn) = channel.stream.conn
            && channel.stream.paused != is_ahead
        {
            channel.stream.paused = is_ahead;
            self.actions.pause.push((conn, is_ahead));
        }
    }

    /// A channel has ended, or is to end.
    pub(crate) fn end_channel(&mut self, id: ChannelId, why: &str) {
        let Some(channel) = self.channels().and_then(|channels| channels.remove(id)) else {
            return;
        };
        if let Some(conn) = channel.stream.conn {
            self.actions.close.push((conn, true));
        }
        if channel.role == Role::Coordinator {
            self.actions.events.push(WorkerEvent::Peer(Event::Lost {
                worker: self.facts.worker,
                slot: channel.slot,
                stay: channel.stay,
                why: why.to_owned(),
            }));
            self.asks_lost(channel.slot, channel.stay);
        }
    }

    /// The connection of a channel broke, or its peer closed it.
    pub fn channel_failed(&mut self, id: ChannelId, error: Option<&io::Error>) {
        let why = error.map_or_else(|| "closed".to_owned(), crate::reactor::reason);
        self.end_channel(id, &why);
    }
}
