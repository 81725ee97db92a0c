//! A byte transform, such as TLS, between a socket and its session or lane.

use std::io;

/// Turns wire bytes into plain bytes and back. A transform may have to send bytes of its own (a handshake, a
/// renewed key): it appends them to `wire` in either direction.
pub trait Transform: Send {
    /// Takes wire bytes that have arrived: appends the plain bytes to `plain`, and the transform's own answer
    /// to `wire`.
    ///
    /// # Errors
    /// The peer violates the transform's protocol; the connection is closed after what is in `wire`.
    fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()>;

    /// Appends plain bytes to `wire` in wire form. The first call has no bytes, so that the side that speaks
    /// first can begin.
    ///
    /// # Errors
    /// The transform has ended.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()>;

    /// Says goodbye: nothing follows. By default the end of the connection says so.
    fn end(&mut self, _wire: &mut Vec<u8>) {}

    /// The progress of its handshake. By default there is none.
    fn handshake(&self) -> Handshake {
        Handshake::None
    }

    /// Has the other end said goodbye? By default only the end of the connection says so.
    fn has_ended(&self) -> bool {
        false
    }

    /// The error if the connection ends here, where the other end would have said so. By default the end of a
    /// connection is none.
    fn cut(&self) -> Option<io::Error> {
        None
    }

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize {
        0
    }
}

/// The progress of a transform's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// There is none.
    None,
    /// It has not ended.
    UnderWay,
    /// The two ends have agreed on everything anew.
    Full,
    /// The two ends go on with an earlier agreement.
    Resumed,
}

/// A transform that has begun behind another one, and whose bytes go through that: compression inside TLS.
pub struct Stacked {
    /// The one next to the socket.
    outer: Box<dyn Transform>,
    inner: Box<dyn Transform>,
    /// Bytes for the inner one that have come through the outer one already.
    early: Vec<u8>,
}

impl Stacked {
    /// Puts `inner` between `outer` and the plain bytes. `early`: bytes for it that have come through `outer`
    /// already.
    pub fn new(outer: Box<dyn Transform>, inner: Box<dyn Transform>, early: &[u8]) -> Self {
        let early = early.to_vec();
        Self { outer, inner, early }
    }
}

impl Transform for Stacked {
    fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()> {
        let (mut between, mut answer) = (std::mem::take(&mut self.early), Vec::new());
        self.outer.open(received, &mut between, wire)?;
        let opened = self.inner.open(&between, plain, &mut answer);
        if !answer.is_empty() {
            self.outer.seal(&answer, wire)?;
        }
        opened
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        let mut between = Vec::new();
        self.inner.seal(plain, &mut between)?;
        self.outer.seal(&between, wire)
    }

    fn end(&mut self, wire: &mut Vec<u8>) {
        let mut between = Vec::new();
        self.inner.end(&mut between);
        if self.outer.seal(&between, wire).is_ok() {
            self.outer.end(wire);
        }
    }

    fn handshake(&self) -> Handshake {
        match self.inner.handshake() {
            Handshake::None => self.outer.handshake(),
            inner => inner,
        }
    }

    fn has_ended(&self) -> bool {
        self.outer.has_ended() || self.inner.has_ended()
    }

    fn cut(&self) -> Option<io::Error> {
        self.outer.cut().or_else(|| self.inner.cut())
    }

    fn memory(&self) -> usize {
        self.outer.memory() + self.inner.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes each byte so many times.
    struct Times(usize);

    impl Transform for Times {
        fn open(&mut self, received: &[u8], plain: &mut Vec<u8>, _: &mut Vec<u8>) -> io::Result<()> {
            plain.extend(received.iter().step_by(self.0));
            Ok(())
        }

        fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
            wire.extend(plain.iter().flat_map(|&byte| std::iter::repeat_n(byte, self.0)));
            Ok(())
        }

        fn end(&mut self, wire: &mut Vec<u8>) {
            wire.push(self.0 as u8);
        }
    }

    #[test]
    fn bytes_go_through_both_of_two_stacked_transforms_in_order() {
        let mut both = Stacked::new(Box::new(Times(2)), Box::new(Times(3)), b"000");
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        both.seal(b"ab", &mut wire).unwrap();
        assert_eq!(wire, b"aaaaaabbbbbb");
        both.open(&wire, &mut plain, &mut Vec::new()).unwrap();
        assert_eq!(plain, b"0ab", "what came early is first");
        wire.clear();
        both.end(&mut wire);
        assert_eq!(wire, [3, 3, 2]);
    }
}
