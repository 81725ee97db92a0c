//! The bytes of one connection in both directions, above the reactor: the same for clients and servers.

use proxima_wire::message::Parse;

use crate::{dialect::Transform, reactor::Conn};

/// Empty buffers, for whatever connection has bytes to send next. The last one that was given back is lent first: it is
/// still in the processor's cache, where a buffer of the connection's own, filled long ago, is not.
#[derive(Debug, Default)]
pub struct BufferPool {
    buffers: Vec<Vec<u8>>,
    /// The room in all of them.
    bytes: usize,
}

impl BufferPool {
    /// How many are kept, the largest that is worth keeping, and the room that all of them may have.
    const COUNT: usize = 1024;
    const SIZE: usize = 64 * 1024;
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
    /// None while it is not (or no more) connected.
    pub conn: Option<Conn>,
    /// Received and not yet understood: the beginning of a message.
    pub read_buffer: Vec<u8>,
    /// So many of its first bytes were understood since: they go when that is worth moving the rest.
    pub(crate) taken: usize,
    /// What its codec has noted about the message that has begun.
    pub(crate) parse: Parse,
    /// To be sent at the end of this turn.
    pub out: Vec<u8>,
    /// On the list of connections to flush.
    pub dirty: bool,
    /// On the list of connections that are looked at until they have taken what they were sent.
    pub watched: bool,
    /// Not receiving.
    pub paused: bool,
    /// Bytes in the transform's form, to be sent at the end of this turn.
    pub wire: Vec<u8>,
    pub transform: Option<Box<dyn Transform>>,
}

impl Stream {
    /// The buffer for bytes to be sent, at first a spare one.
    #[inline]
    pub fn filling(&mut self, buffers: &mut BufferPool) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = buffers.lend();
        }
        &mut self.out
    }

    /// Notes that there is something to flush; true the first time.
    #[inline]
    pub fn mark(&mut self) -> bool {
        !std::mem::replace(&mut self.dirty, true)
    }

    /// Keeps bytes that were not understood yet, at first in a spare buffer.
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

    /// From here on all goes through this; what is still to be sent leaves as it is. False: something stands there already, or the
    /// transform cannot begin.
    #[must_use]
    pub fn upgrade(&mut self, mut transform: Box<dyn Transform>) -> bool {
        self.wire.append(&mut self.out);
        let begins = transform.seal(&[], &mut self.wire).is_ok();
        begins && self.transform.replace(transform).is_none()
    }

    /// Bytes that are kept.
    pub fn held(&self) -> usize {
        self.read_buffer.len() - self.taken
    }

    /// Lends what was kept, to be [given back](Self::keep_rest), and where in it the first byte stands that was not understood.
    pub fn take_read_buffer(&mut self) -> (Vec<u8>, usize) {
        (
            std::mem::take(&mut self.read_buffer),
            std::mem::take(&mut self.taken),
        )
    }

    /// Keeps what was lent, of which all before `at` and not everything was understood. A long line is served in many small
    /// steps: each moves only as many bytes as were understood before.
    pub fn keep_rest(&mut self, mut read_buffer: Vec<u8>, at: usize) {
        if at > read_buffer.len() / 2 {
            read_buffer.drain(..at);
        } else {
            self.taken = at;
        }
        self.read_buffer = read_buffer;
    }
}

/// Appends a piece of a message. A large buffer grows from one power of two to the next, so that what one connection has
/// outgrown fits another: odd sizes would leave the allocator with holes that nobody fills.
#[inline]
pub fn append(piece: &[u8], buffer: &mut Vec<u8>) {
    const LARGE: usize = 64 * 1024;
    let wanted = buffer.len() + piece.len();
    if wanted > LARGE && wanted > buffer.capacity() {
        buffer.reserve_exact(wanted.next_power_of_two() - buffer.len());
    }
    buffer.extend_from_slice(piece);
}
