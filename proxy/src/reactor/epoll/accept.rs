//! Takes one client from a listener's queue.

use super::Epoll;
use crate::reactor::{Conn, Event, socket::accept};

impl Epoll {
    pub(super) fn accept(&mut self, conn: Conn) -> Option<Event> {
        let source = self.source(conn)?;
        let tag = source.tag;
        match accept(&source.socket) {
            Ok(Some((socket, address))) => {
                source.accepted += 1;
                Some(Event::Accepted { tag, socket, address })
            }
            Ok(None) => None,
            // The process has most often run out of descriptors. The clients stay in the queue until the
            // listener is resumed.
            Err(error) => {
                (source.paused, source.readable) = (true, true);
                Some(Event::Failed { tag, error })
            }
        }
    }
}
