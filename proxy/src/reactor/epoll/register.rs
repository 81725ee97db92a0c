//! The events that the kernel is asked to report for each socket. A connection for every request is read
//! before it is registered, and registered once: for what arrives, and for room in the socket only once a
//! send did not fit. Registering reports what is there already, so nothing that happens before it is missed.

use std::{io, mem, os::fd::AsRawFd};

use mio::{Interest, unix::SourceFd};

use super::{
    Epoll,
    source::{Source, Stage},
    token,
};
use crate::reactor::{Conn, Event};

impl Epoll {
    /// Registers a socket that is told of at once.
    pub(super) fn register_now(&mut self, conn: Conn) -> io::Result<Conn> {
        match self.register(conn) {
            Ok(()) => Ok(conn),
            Err(error) => {
                self.sources.remove(conn.index as usize);
                Err(error)
            }
        }
    }

    /// Has the kernel tell when the socket takes bytes again.
    pub(super) fn await_room(&mut self, conn: Conn) {
        if let Some(source) = self.source(conn)
            && !mem::replace(&mut source.awaits_room, true)
        {
            self.unregistered.push(conn);
        }
    }

    /// Makes the registrations that this turn has left. What cannot be registered has failed.
    pub(super) fn register_all(&mut self) {
        let mut unregistered = mem::take(&mut self.unregistered);
        for conn in unregistered.drain(..) {
            if let Err(error) = self.register(conn)
                && let Some(source) = self.source(conn)
            {
                let tag = source.tag;
                self.known.push(Event::Failed { tag, error });
            }
        }
        self.unregistered = unregistered;
    }

    fn register(&mut self, conn: Conn) -> io::Result<()> {
        let registry = self.poll.registry();
        let Some(source) = self
            .sources
            .get_mut(conn.index as usize)
            .filter(|source| source.generation == conn.generation)
        else {
            return Ok(());
        };
        let interest = source.interest();
        let fd = source.socket.as_raw_fd();
        match source.registered {
            Some(before) if before == interest => return Ok(()),
            Some(_) => registry.reregister(&mut SourceFd(&fd), token(conn), interest)?,
            None => registry.register(&mut SourceFd(&fd), token(conn), interest)?,
        }
        source.registered = Some(interest);
        Ok(())
    }
}

impl Source {
    fn interest(&self) -> Interest {
        match self.awaits_room || self.state == Stage::Connecting {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        }
    }
}
