//! Fetches ready events from the kernel, and handles them one after the other.

use std::{io, time::Duration};

use super::{Epoll, conn, source::Stage};
use crate::reactor::{Conn, Event};

/// Clients accepted in one turn. The rest waits for the next turn, so that a storm of connections does not
/// starve requests.
const ACCEPTS: usize = 256;

/// Events fetched at a time. The kernel looks at every socket that it reports, and a socket that is read soon
/// after is still in the processor's cache.
pub(super) const FETCH: usize = 128;
/// Fetches in one turn, so that many ready clients are still one batch.
pub(super) const FETCHES: usize = 16;

/// A socket that this turn has still to handle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) conn: Conn,
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Epoll {
    /// Fetches ready events into this turn's list.
    pub(super) fn fetch(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.ready.clear();
        self.cursor = 0;
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.events.clear(),
            other => other?,
        }
        let mut fetched = 0;
        for event in &self.events {
            fetched += 1;
            let conn = conn(event.token());
            if (event.is_read_closed() || event.is_error())
                && let Some(source) = self.sources.get_mut(conn.index as usize)
            {
                source.hangup |= source.generation == conn.generation;
                source.broken |= event.is_error() && source.generation == conn.generation;
            }
            let read = event.is_readable() || event.is_read_closed() || event.is_error();
            self.ready.push(Ready {
                conn,
                read,
                write: event.is_writable() || event.is_error(),
            });
        }
        self.fetches = if fetched == FETCH { self.fetches - 1 } else { 0 };
        Ok(())
    }

    /// The next of the fetched events.
    pub(super) fn next_fetched(&mut self) -> Option<Event> {
        while let Some(ready) = self.ready.get_mut(self.cursor) {
            let conn = ready.conn;
            let (write, read) = (std::mem::take(&mut ready.write), ready.read);
            let Some(source) = self
                .sources
                .get(conn.index as usize)
                .filter(|s| s.generation == conn.generation)
            else {
                self.cursor += 1;
                continue;
            };
            if source.state == Stage::Listening {
                if source.accepted >= ACCEPTS {
                    self.again.push(conn);
                } else if !source.paused
                    && let Some(event) = self.accept(conn)
                {
                    return Some(event);
                }
                if let Some(source) = self.source(conn) {
                    source.accepted = 0;
                    // No further edge reports the clients that wait already.
                    source.readable |= source.paused;
                }
                self.cursor += 1;
                continue;
            }
            // The write side comes first: it turns a connecting socket into an open one.
            if write && (source.state == Stage::Connecting || !source.backlog.is_empty()) {
                if let Some(event) = self.write(conn) {
                    return Some(event);
                }
                continue;
            }
            self.cursor += 1;
            if read
                && source.state == Stage::Open
                && let Some(event) = self.read(conn)
            {
                return Some(event);
            }
        }
        None
    }
}
