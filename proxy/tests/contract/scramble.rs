//! A byte transform that resembles TLS: the connecting side speaks first, and nothing plain leaves before it
//! has.

use std::{io, net::SocketAddr};

use proxima::protocol::Transform;

use crate::lines::nonce;

/// A transform that tells the accepting side whom the connecting side means.
pub(crate) trait Secret: Transform {
    /// Has the connecting side named the server at this address?
    fn names(&self, address: SocketAddr) -> bool;
}

/// Each byte is XORed with a counter, one for each direction, which begins at a nonce that the connecting
/// side chooses.
pub(crate) struct Scramble {
    /// `None` until the handshake is over.
    nonce: Option<u8>,
    begins: bool,
    sealed: u8,
    opened: u8,
    /// Plain bytes from before the end of the handshake.
    early: Vec<u8>,
}

/// The handshake is this text and the nonce.
const MARK: u8 = b'~';

impl Scramble {
    pub(crate) fn connecting(nonce: u8) -> Self {
        Self {
            nonce: Some(nonce),
            begins: true,
            sealed: 0,
            opened: 0,
            early: Vec::new(),
        }
    }

    pub(crate) fn accepting() -> Self {
        Self {
            nonce: None,
            begins: false,
            sealed: 0,
            opened: 0,
            early: Vec::new(),
        }
    }
}

impl Secret for Scramble {
    fn names(&self, address: SocketAddr) -> bool {
        self.nonce == Some(nonce(&address.to_string()))
    }
}

/// One transform behind another.
pub(crate) struct Both {
    pub(crate) outer: Box<dyn Secret>,
    pub(crate) inner: Box<dyn Secret>,
}

impl Secret for Both {
    fn names(&self, address: SocketAddr) -> bool {
        self.outer.names(address) && self.inner.names(address)
    }
}

impl Transform for Both {
    fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()> {
        let (mut between, mut answer) = (Vec::new(), Vec::new());
        self.outer.open(received, &mut between, wire)?;
        self.inner.open(&between, plain, &mut answer)?;
        self.outer.seal(&answer, wire)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        let mut between = Vec::new();
        self.inner.seal(plain, &mut between)?;
        self.outer.seal(&between, wire)
    }
}

fn mix(bytes: &[u8], nonce: u8, counter: &mut u8, out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(byte ^ nonce ^ *counter);
        *counter = counter.wrapping_add(1);
    }
}

impl Transform for Scramble {
    fn open(&mut self, mut received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()> {
        let nonce = match self.nonce {
            Some(nonce) => nonce,
            None => {
                // The handshake may come in pieces.
                while let ([first, rest @ ..], true) = (received, self.opened == 0) {
                    if *first != MARK {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    (self.opened, received) = (1, rest);
                }
                let [nonce, rest @ ..] = received else {
                    return Ok(());
                };
                received = rest;
                self.nonce = Some(*nonce);
                self.opened = 0;
                let early = std::mem::take(&mut self.early);
                mix(&early, *nonce, &mut self.sealed, wire);
                *nonce
            }
        };
        mix(received, nonce, &mut self.opened, plain);
        Ok(())
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        match self.nonce {
            Some(nonce) => {
                if std::mem::take(&mut self.begins) {
                    wire.extend([MARK, nonce]);
                }
                mix(plain, nonce, &mut self.sealed, wire);
            }
            None => self.early.extend_from_slice(plain),
        }
        Ok(())
    }
}
