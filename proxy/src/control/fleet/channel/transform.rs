//! TLS on a channel that a worker has taken over.

use std::io::{self, Read, Write};

use rustls::Connection;

use crate::protocol::Transform;

/// An established TLS connection between a worker's bytes and its socket.
pub(in crate::control::fleet) struct Sealed {
    tls: Connection,
}

impl Sealed {
    /// A connection whose handshake is over. What it has received beyond is appended to `early`.
    pub(in crate::control::fleet) fn new(mut tls: Connection, early: &mut Vec<u8>) -> io::Result<Self> {
        // The worker bounds what it buffers.
        tls.set_buffer_limit(None);
        let mut sealed = Self { tls };
        sealed.read(early)?;
        Ok(sealed)
    }

    fn flush(&mut self, wire: &mut Vec<u8>) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(wire)?;
        }
        Ok(())
    }

    fn read(&mut self, plain: &mut Vec<u8>) -> io::Result<()> {
        let state = self.tls.process_new_packets().map_err(io::Error::other)?;
        let waiting = state.plaintext_bytes_to_read();
        if waiting > 0 {
            let start = plain.len();
            plain.resize(start + waiting, 0);
            self.tls.reader().read_exact(&mut plain[start..])?;
        }
        match state.peer_has_closed() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }
}

impl Transform for Sealed {
    fn open(&mut self, mut received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()> {
        while !received.is_empty() {
            self.tls.read_tls(&mut received)?;
            self.read(plain)?;
        }
        self.flush(wire)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        self.tls.writer().write_all(plain)?;
        self.flush(wire)
    }
}
