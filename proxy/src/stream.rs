//! The bytes of one connection in both directions, above the reactor. Connections to clients and to servers
//! use the same type.

use std::io;

use proxima_wire::message::Parse;

use crate::{
    protocol::{Handshake, Stacked, Transform},
    reactor::Conn,
};

/// The send-buffer pool: empty buffers for the connection that has bytes to send next. The last buffer that
/// was given back is taken first: it is still in the processor's cache. A buffer that belonged to the
/// connection, and was filled long ago, would not be.
#[derive(Debug, Default)]
pub struct BufferPool {
    buffers: Vec<Vec<u8>>,
    /// The capacity of all of them, in bytes.
    bytes: usize,
}

impl BufferPool {
    /// The pool keeps at most this many buffers.
    const COUNT: usize = 1024;
    /// The pool keeps no larger buffer than this, in bytes.
    const SIZE: usize = 128 * 1024;
    /// The buffers of the pool have at most this capacity together, in bytes.
    const BYTES: usize = 4 << 20;

    fn lend(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Takes back an empty buffer.
    pub fn give(&mut self, buffer: Vec<u8>) {
        debug_assert!(buffer.is_empty());
        let size = buffer.capacity();
        let fits = self.buffers.len() < Self::COUNT && self.bytes + size <= Self::BYTES;
        if fits && (1..=Self::SIZE).contains(&size) {
            self.bytes += size;
            self.buffers.push(buffer);
        }
    }
}

/// One connection's bytes.
#[derive(Default)]
pub struct Stream {
    /// The connection in the reactor; `None`: it is not connected yet, or no longer.
    pub conn: Option<Conn>,
    /// Received bytes that are not understood yet: the beginning of a message.
    pub read_buffer: Vec<u8>,
    /// This many of the first bytes of `read_buffer` have been understood since. They are removed when that
    /// is worth moving the rest.
    pub(crate) taken: usize,
    /// The codec's notes on the message that has begun.
    pub(crate) parse: Parse,
    /// Bytes to send at the end of this turn, behind those that are kept.
    pub out: Vec<u8>,
    /// This many of the first bytes of `out` have been sent. A lane keeps them until they are answered.
    pub kept: usize,
    /// The connection is on the list of connections to flush.
    pub dirty: bool,
    /// The connection is on the list of those that are checked until they have taken all bytes sent to them.
    pub watched: bool,
    /// The connection does not receive.
    pub paused: bool,
    /// Bytes in the form of the transform, to be sent at the end of this turn.
    pub wire: Vec<u8>,
    /// The transform of every byte of the connection; `None` if bytes are sent and received as they are.
    pub transform: Option<Box<dyn Transform>>,
}

impl Stream {
    /// The buffer for bytes to send. An empty one comes from the pool first.
    #[inline]
    pub fn filling(&mut self, buffers: &mut BufferPool) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = buffers.lend();
        }
        &mut self.out
    }

    /// The bytes that are still to be sent.
    #[inline]
    pub fn unsent(&self) -> &[u8] {
        self.out.get(self.kept..).unwrap_or_default()
    }

    /// Drops the bytes that have been sent.
    #[inline]
    pub fn drop_kept(&mut self, buffers: &mut BufferPool) {
        let kept = std::mem::take(&mut self.kept);
        if kept == self.out.len() {
            let mut emptied = std::mem::take(&mut self.out);
            emptied.clear();
            buffers.give(emptied);
        } else {
            self.out.drain(..kept);
        }
    }

    /// Notes that there is something to flush. Returns `true` the first time.
    #[inline]
    pub fn mark(&mut self) -> bool {
        !std::mem::replace(&mut self.dirty, true)
    }

    /// Keeps bytes that are not understood yet, at first in a buffer of the pool.
    #[inline]
    pub fn keep(&mut self, rest: &[u8], buffers: &mut BufferPool) {
        if rest.is_empty() {
            return;
        }
        if self.read_buffer.capacity() == 0 {
            self.read_buffer = buffers.lend();
        }
        if self.taken > 0 && self.read_buffer.len() + rest.len() > self.read_buffer.capacity() {
            self.read_buffer.drain(..std::mem::take(&mut self.taken));
        }
        append(rest, &mut self.read_buffer);
    }

    /// Puts this transform in place, behind the one that is there: every later byte goes through it, and what
    /// is still to be sent leaves before. `behind`: the bytes that came behind the message that agreed on it.
    /// Returns the bytes to be opened first; `None` if the transform cannot begin.
    #[must_use]
    pub fn upgrade(&mut self, mut transform: Box<dyn Transform>, behind: &[u8]) -> Option<Vec<u8>> {
        let is_first = self.transform.is_none();
        match self.transform.take() {
            None => self.wire.append(&mut self.out),
            Some(mut outer) => {
                outer.seal(&self.out, &mut self.wire).ok()?;
                self.out.clear();
                transform = Box::new(Stacked::new(outer, transform, behind));
            }
        }
        let begins = transform.seal(&[], &mut self.wire).is_ok();
        self.transform = Some(transform);
        begins.then(|| if is_first { behind.to_vec() } else { Vec::new() })
    }

    /// Puts the bytes that are still to be sent into the form of the transform. `keeps`: they stay here until
    /// they are answered.
    ///
    /// # Errors
    /// The transform has ended.
    pub fn seal(&mut self, keeps: bool, buffers: &mut BufferPool) -> io::Result<()> {
        let unsent = self.out.get(self.kept..).unwrap_or_default();
        if !unsent.is_empty()
            && let Some(transform) = &mut self.transform
        {
            if self.wire.capacity() == 0 {
                self.wire = buffers.lend();
            }
            transform.seal(unsent, &mut self.wire)?;
        }
        if !keeps {
            let mut emptied = std::mem::take(&mut self.out);
            emptied.clear();
            buffers.give(emptied);
        }
        Ok(())
    }

    /// Is the handshake of its transform under way?
    pub fn is_shaking_hands(&self) -> bool {
        let transform = self.transform.as_ref();
        transform.is_some_and(|transform| transform.handshake() == Handshake::UnderWay)
    }

    /// The bytes to send before the connection is closed: `last`, behind those that the transform still has, and
    /// the transform's own goodbye. `None` if there are none, and no transform.
    pub fn farewell(&mut self, last: &[u8]) -> Option<Vec<u8>> {
        let Some(transform) = self.transform.as_mut() else {
            return (!last.is_empty()).then(|| last.to_vec());
        };
        let mut wire = std::mem::take(&mut self.wire);
        if last.is_empty() || transform.seal(last, &mut wire).is_ok() {
            transform.end(&mut wire);
        }
        Some(wire)
    }

    /// Bytes of memory that its transform takes.
    pub fn transform_memory(&self) -> usize {
        self.transform.as_ref().map_or(0, |transform| transform.memory())
    }

    /// Bytes that are kept because they are not understood yet.
    pub fn held(&self) -> usize {
        self.read_buffer.len() - self.taken
    }

    /// Takes the read buffer out, to be [given back](Self::keep_rest), with the position of the first byte
    /// that is not understood.
    pub fn take_read_buffer(&mut self) -> (Vec<u8>, usize) {
        (
            std::mem::take(&mut self.read_buffer),
            std::mem::take(&mut self.taken),
        )
    }

    /// Puts the read buffer back, of which all bytes before `at` are understood, but not every byte. A long
    /// line is served in many small steps: each step moves only as many bytes as were understood before.
    pub fn keep_rest(&mut self, mut read_buffer: Vec<u8>, at: usize) {
        if at > read_buffer.len() / 2 {
            read_buffer.drain(..at);
        } else {
            self.taken = at;
        }
        self.read_buffer = read_buffer;
    }
}

/// Appends a piece of a message. A large buffer grows from one power of two to the next, so that a buffer
/// that one connection has outgrown fits another. Odd sizes would leave the allocator with holes that nothing
/// fills.
#[inline]
pub fn append(piece: &[u8], buffer: &mut Vec<u8>) {
    const LARGE: usize = 64 * 1024;
    let wanted = buffer.len() + piece.len();
    if wanted > LARGE && wanted > buffer.capacity() {
        buffer.reserve_exact(wanted.next_power_of_two() - buffer.len());
    }
    buffer.extend_from_slice(piece);
}
