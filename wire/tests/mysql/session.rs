//! What a connection sees: events of a reply that comes in pieces, and packets that a test makes.

use proxima_wire::mysql::{
    Capabilities, EofPacket, ErrPacket, Event, Fault, OkPacket, ReplyReader, Shape, Status, append_packet,
};

/// As most drivers ask for.
pub(crate) const PLAIN: Capabilities = Capabilities::PROTOCOL_41;
/// With everything that changes the bytes of a reply.
pub(crate) const ALL: Capabilities = PLAIN
    .with(Capabilities::DEPRECATE_EOF)
    .with(Capabilities::SESSION_TRACK);

/// What was read of a reply: each event with the number of bytes up to it.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) events: Vec<(usize, String)>,
    /// Bytes of the reply, if it has ended.
    pub(crate) end: Option<usize>,
    pub(crate) fault: Option<Fault>,
}

/// Reads a reply that comes in these pieces, up to its end.
pub(crate) fn read<'a>(
    shape: Shape,
    capabilities: Capabilities,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Read {
    let mut reader = ReplyReader::new(shape, capabilities, 1);
    let mut read = Read {
        events: Vec::new(),
        end: None,
        fault: None,
    };
    let mut seen = 0;
    for mut piece in pieces {
        while !piece.is_empty() && read.end.is_none() {
            let step = match reader.read(piece) {
                Ok(step) => step,
                Err(fault) => {
                    read.fault = Some(fault);
                    return read;
                }
            };
            assert!(step.taken > 0 || step.is_last, "no progress: {step:?}");
            seen += step.taken;
            piece = &piece[step.taken..];
            if step.event != Event::Bytes {
                read.events.push((seen, format!("{:?}", step.event)));
            }
            if step.is_last {
                read.end = Some(seen);
            }
        }
    }
    read
}

/// The bytes in pieces of these sizes, over and over.
pub(crate) fn pieces<'a>(bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().copied().cycle();
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(sizes.next()?.min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Packets that a server sends, one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) bytes: Vec<u8>,
    capabilities: Capabilities,
    sequence: u8,
}

impl Server {
    pub(crate) fn new(capabilities: Capabilities) -> Self {
        Self {
            bytes: Vec::new(),
            capabilities,
            sequence: 1,
        }
    }

    /// A message of any payload.
    pub(crate) fn raw(mut self, payload: &[u8]) -> Self {
        self.sequence = append_packet(self.sequence, &mut self.bytes, |out| {
            out.extend_from_slice(payload)
        });
        self
    }

    pub(crate) fn ok(mut self, status: Status) -> Self {
        let ok = OkPacket {
            affected_rows: 3,
            status,
            info: b"info",
            ..OkPacket::default()
        };
        ok.append(self.capabilities, self.sequence, &mut self.bytes);
        self.sequence = self.sequence.wrapping_add(1);
        self
    }

    /// The end of rows, in the form that was agreed on.
    pub(crate) fn end(mut self, status: Status) -> Self {
        if !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            return self.eof(status);
        }
        let ok = OkPacket {
            status,
            is_eof: true,
            ..OkPacket::default()
        };
        ok.append(self.capabilities, self.sequence, &mut self.bytes);
        self.sequence = self.sequence.wrapping_add(1);
        self
    }

    pub(crate) fn eof(mut self, status: Status) -> Self {
        EofPacket { warnings: 0, status }.append(self.sequence, &mut self.bytes);
        self.sequence = self.sequence.wrapping_add(1);
        self
    }

    pub(crate) fn error(mut self) -> Self {
        let error = ErrPacket {
            code: 1064,
            state: Some(*b"42000"),
            message: b"wrong",
        };
        error.append(self.sequence, &mut self.bytes);
        self.sequence = self.sequence.wrapping_add(1);
        self
    }

    /// Appends this number of definitions, and the EOF packet behind them if the protocol has one.
    pub(crate) fn definitions(mut self, count: usize, status: Status) -> Self {
        for _ in 0..count {
            self = self.raw(b"\x03def\x01s\x01t\x01t\x01c\x01c\x0c\x21\0\x04\0\0\0\xfd\0\0\0\0\0");
        }
        match self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            true => self,
            false => self.eof(status),
        }
    }

    /// A result with a row of each of these payloads.
    pub(crate) fn rows(mut self, rows: &[&[u8]], status: Status) -> Self {
        self = self.raw(&[2]).definitions(2, Status(0));
        for row in rows {
            self = self.raw(row);
        }
        self.end(status)
    }
}
