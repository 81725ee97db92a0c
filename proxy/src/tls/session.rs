//! One connection's TLS.

use std::io::{self, BufRead, Write};

use rustls::{Connection, HandshakeKind};

use super::failure::{Failure, broken};
use crate::protocol::{Handshake, Transform};

/// The first byte of a record with a handshake, and of one with an alert.
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
/// The alert for who does not speak TLS: a fatal one, of an unexpected message.
const UNEXPECTED: [u8; 7] = [ALERT, 3, 3, 0, 2, 2, 10];
/// Bytes that a connection counts for beside the buffers of its stream. Its keys and the library's buffer
/// take 8.5 KiB as measured, and a record that has come in part up to 16 KiB more.
const MEMORY: usize = 16 * 1024;
/// The library's buffer grows beyond this size for records that do not fit, in bytes.
const BUFFER: usize = 4096;

/// The transform of one connection.
pub struct Session {
    tls: Connection,
    /// The first byte has come, and is that of TLS.
    is_begun: bool,
    /// The other end does not speak TLS, and has been told so.
    is_foreign: bool,
    /// The other end has said goodbye.
    has_ended: bool,
}

/// The transform of a connection whose handshake is to begin.
pub(super) fn begin(tls: Result<impl Into<Connection>, rustls::Error>) -> Box<dyn Transform> {
    match tls {
        Ok(tls) => Box::new(Session::new(tls.into())),
        Err(error) => Box::new(FailedTransform(error)),
    }
}

/// A connection for which the library has no memory or no random numbers. Nothing goes through it.
struct FailedTransform(rustls::Error);

impl Transform for FailedTransform {
    fn open(&mut self, _: &[u8], _: &mut Vec<u8>, _: &mut Vec<u8>) -> io::Result<()> {
        Err(broken(&self.0))
    }

    fn seal(&mut self, _: &[u8], _: &mut Vec<u8>) -> io::Result<()> {
        Err(broken(&self.0))
    }
}

impl Session {
    fn new(mut tls: Connection) -> Self {
        // What is buffered is bounded by the session or the lane.
        tls.set_buffer_limit(None);
        Self {
            tls,
            is_begun: false,
            is_foreign: false,
            has_ended: false,
        }
    }

    /// Takes over a connection whose handshake is over. What it has received beyond is appended to `early`.
    ///
    /// # Errors
    /// This breaks the rules of TLS, or the other end has left already.
    pub fn take_over(tls: impl Into<Connection>, early: &mut Vec<u8>) -> io::Result<Self> {
        let mut session = Self::new(tls.into());
        session.is_begun = true;
        session.read(early)?;
        match session.has_ended {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(session),
        }
    }

    /// Hands out what the library has to send.
    fn flush(&mut self, wire: &mut Vec<u8>) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(wire)?;
        }
        Ok(())
    }

    fn read(&mut self, plain: &mut Vec<u8>) -> io::Result<()> {
        let state = self.tls.process_new_packets().map_err(|error| broken(&error))?;
        self.has_ended |= state.peer_has_closed();
        let mut left = state.plaintext_bytes_to_read();
        let mut reader = self.tls.reader();
        while left > 0 {
            let piece = reader.fill_buf()?;
            let length = piece.len();
            plain.extend_from_slice(piece);
            reader.consume(length);
            left = left.saturating_sub(length.max(1));
        }
        Ok(())
    }

    fn take(&mut self, mut received: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        let may_have_grown = received.len() > BUFFER;
        // Nothing behind the goodbye is the other end's.
        while !received.is_empty() && !self.has_ended {
            if self.tls.read_tls(&mut received)? == 0 {
                break;
            }
            self.read(plain)?;
        }
        if may_have_grown {
            // The library's buffer shrinks when it is to be read into.
            let _ = self.tls.read_tls(&mut EmptyReader);
        }
        Ok(())
    }
}

/// A reader that has nothing now.
struct EmptyReader;

impl io::Read for EmptyReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Transform for Session {
    fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()> {
        if let Some(&first) = received.first()
            && !std::mem::replace(&mut self.is_begun, true)
            && !matches!(first, HANDSHAKE | ALERT)
        {
            self.is_foreign = true;
            if let Connection::Server(_) = self.tls {
                wire.extend(UNEXPECTED);
            }
            return Err(Failure::Plain.error("the other end does not speak it"));
        }
        let taken = self.take(received, plain);
        // The alert that says what is wrong leaves as well.
        self.flush(wire)?;
        taken
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        self.tls.writer().write_all(plain)?;
        self.flush(wire)
    }

    fn end(&mut self, wire: &mut Vec<u8>) {
        if self.is_foreign {
            return;
        }
        self.tls.send_close_notify();
        // Writing to memory does not fail.
        let _ = self.flush(wire);
    }

    fn handshake(&self) -> Handshake {
        match self.tls.handshake_kind() {
            _ if self.tls.is_handshaking() => Handshake::UnderWay,
            Some(HandshakeKind::Resumed) => Handshake::Resumed,
            _ => Handshake::Full,
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn cut(&self) -> Option<io::Error> {
        let cut = || Failure::Cut.error("the connection was cut, the other end did not say that it ends");
        (!self.has_ended).then(cut)
    }

    fn memory(&self) -> usize {
        MEMORY
    }
}
