//! The position of a reader in a reply, and the message that comes next.

use super::{
    AuthMore, AuthSwitch, Capabilities, EofPacket, ErrPacket, Event, Fault, OkPacket, PrepareOk, Shape,
    Status, bytes::Fields, eof, packet::LARGEST_PACKET,
};

/// The most columns of a result. Servers allow 4096 in a table.
const MOST_COLUMNS: u64 = 0xffff;

/// The next message that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The head of the next result.
    Head,
    /// The number of definitions that are left.
    Definitions(u32, AfterDefinitions),
    /// The EOF packet behind definitions.
    DefinitionsEnd(AfterDefinitions),
    Rows,
    /// Rows with the output parameters of a procedure. Another result follows, which MySQL says only before
    /// the rows.
    OutputParameters,
    /// Definitions whose number is not known.
    Columns,
    /// OK, EOF or ERR.
    Single,
    Text,
    Prepared,
    Login,
    /// The reply has ended.
    End,
}

/// The packets behind a list of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterDefinitions {
    Rows,
    /// The number of definitions of a prepared statement's columns.
    Columns(u16),
    End,
}

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Bytes to pass on: a row, a definition, a text.
    Bytes,
    Ok,
    Eof,
    Err,
    Count,
    Prepared,
    Switch,
    More,
}

impl Stage {
    /// The first stage of a reply.
    pub(super) const fn of(shape: Shape) -> Self {
        match shape {
            Shape::Nothing => Self::End,
            Shape::Done => Self::Single,
            Shape::Text => Self::Text,
            Shape::Results => Self::Head,
            Shape::Prepared => Self::Prepared,
            Shape::Rows => Self::Rows,
            Shape::Columns => Self::Columns,
            Shape::Login => Self::Login,
        }
    }

    /// The role of a message that begins with the byte `first`, and whose first packet has `packet` bytes of
    /// payload.
    pub(super) fn role(self, first: u8, packet: u32, capabilities: Capabilities) -> Result<Role, Fault> {
        // Since no length begins with 0xff, an ERR packet is possible everywhere.
        if first == 0xff {
            return Ok(Role::Err);
        }
        let role = match self {
            Self::Rows | Self::OutputParameters => return Ok(row(first, packet, capabilities)),
            Self::Definitions(..) => return Ok(Role::Bytes),
            Self::Columns => match row(first, packet, capabilities) {
                Role::Ok if packet == eof::LEN => Role::Eof,
                role => role,
            },
            Self::Text => Role::Bytes,
            Self::Head => match first {
                0 => Role::Ok,
                0xfb => return Err(Fault::LocalInfile),
                _ => Role::Count,
            },
            Self::DefinitionsEnd(_) if first == 0xfe => Role::Eof,
            Self::Single => match first {
                0 => Role::Ok,
                0xfe if packet == eof::LEN => Role::Eof,
                0xfe => Role::Ok,
                _ => return Err(Fault::FirstByte(first)),
            },
            Self::Prepared if first == 0 => Role::Prepared,
            Self::Login => match first {
                0 => Role::Ok,
                1 => Role::More,
                0xfe => Role::Switch,
                _ => return Err(Fault::FirstByte(first)),
            },
            Self::DefinitionsEnd(_) | Self::Prepared | Self::End => return Err(Fault::FirstByte(first)),
        };
        Ok(role)
    }

    /// The stage behind a message that was passed on.
    pub(super) const fn passed(self, capabilities: Capabilities) -> Self {
        match self {
            Self::Definitions(left, then) if left > 1 => Self::Definitions(left - 1, then),
            Self::Definitions(_, then) if capabilities.has(Capabilities::DEPRECATE_EOF) => then.stage(),
            Self::Definitions(_, then) => Self::DefinitionsEnd(then),
            Self::Text => Self::End,
            other => other,
        }
    }

    /// The stage behind a message that is understood, and what it says. `is_cut`: its last bytes are missing.
    pub(super) fn understood(
        self,
        role: Role,
        payload: &[u8],
        is_cut: bool,
        capabilities: Capabilities,
    ) -> Result<(Self, Event<'_>), Fault> {
        Ok(match role {
            Role::Bytes => (self, Event::Bytes),
            Role::Err => (Self::End, Event::Err(ErrPacket::read(payload)?)),
            Role::Ok => {
                let ok = OkPacket::read(payload, capabilities, is_cut)?;
                (self.ended(ok.status), Event::Ok(ok))
            }
            Role::Eof => {
                let eof = EofPacket::read(payload)?;
                let next = match self {
                    Self::DefinitionsEnd(AfterDefinitions::Rows) => Self::rows(eof.status),
                    Self::DefinitionsEnd(then) => then.stage(),
                    _ => self.ended(eof.status),
                };
                (next, Event::Eof(eof))
            }
            Role::Count => {
                let columns = count(payload)?;
                (
                    Self::Definitions(columns, AfterDefinitions::Rows),
                    Event::Columns(columns),
                )
            }
            Role::Prepared => {
                let prepared = PrepareOk::read(payload)?;
                let next = match prepared.parameters {
                    0 => AfterDefinitions::Columns(prepared.columns).stage(),
                    some => Self::Definitions(u32::from(some), AfterDefinitions::Columns(prepared.columns)),
                };
                (next, Event::Prepared(prepared))
            }
            Role::Switch => (self, Event::AuthSwitch(AuthSwitch::read(payload)?)),
            Role::More => (self, Event::AuthMore(AuthMore::read(payload)?)),
        })
    }

    /// The stage behind the definitions of a result, whose end has this status.
    const fn rows(status: Status) -> Self {
        let more = Status(Status::MORE_RESULTS.0 | Status::OUTPUT_PARAMETERS.0);
        if status.has(Status::CURSOR_EXISTS) {
            Self::Head.ended(status)
        } else if status.has(more) {
            Self::OutputParameters
        } else {
            Self::Rows
        }
    }

    /// The stage behind the end of a result.
    const fn ended(self, status: Status) -> Self {
        match self {
            Self::OutputParameters => Self::Head,
            Self::Head | Self::Rows if status.has(Status::MORE_RESULTS) => Self::Head,
            _ => Self::End,
        }
    }
}

impl Stage {
    /// The stage in two words, for [`Self::unpacked`].
    pub(super) const fn packed(self) -> [u32; 2] {
        let (code, then, count) = match self {
            Self::Head => (0, 0, 0),
            Self::Definitions(count, then) => (1, then.packed(), count),
            Self::DefinitionsEnd(then) => (2, then.packed(), 0),
            Self::Rows => (3, 0, 0),
            Self::OutputParameters => (4, 0, 0),
            Self::Columns => (5, 0, 0),
            Self::Single => (6, 0, 0),
            Self::Text => (7, 0, 0),
            Self::Prepared => (8, 0, 0),
            Self::Login => (9, 0, 0),
            Self::End => (10, 0, 0),
        };
        [code | then << 8, count]
    }

    /// The stage that was packed so.
    pub(super) const fn unpacked([word, count]: [u32; 2]) -> Self {
        let then = AfterDefinitions::unpacked(word >> 8);
        match word & 0xff {
            0 => Self::Head,
            1 => Self::Definitions(count, then),
            2 => Self::DefinitionsEnd(then),
            3 => Self::Rows,
            4 => Self::OutputParameters,
            5 => Self::Columns,
            6 => Self::Single,
            7 => Self::Text,
            8 => Self::Prepared,
            9 => Self::Login,
            _ => Self::End,
        }
    }
}

impl AfterDefinitions {
    const fn packed(self) -> u32 {
        match self {
            Self::Rows => 0,
            Self::End => 1,
            Self::Columns(columns) => 2 | (columns as u32) << 8,
        }
    }

    const fn unpacked(word: u32) -> Self {
        match word & 0xff {
            0 => Self::Rows,
            1 => Self::End,
            _ => Self::Columns((word >> 8) as u16),
        }
    }

    const fn stage(self) -> Stage {
        match self {
            Self::Rows => Stage::Rows,
            Self::Columns(0) | Self::End => Stage::End,
            Self::Columns(columns) => Stage::Definitions(columns as u32, Self::End),
        }
    }
}

/// A row, or the end of rows. A row may begin with 0xfe as well, but only with a value of 16 MiB or more,
/// whose first packet is full.
#[inline]
const fn row(first: u8, packet: u32, capabilities: Capabilities) -> Role {
    let deprecated = capabilities.has(Capabilities::DEPRECATE_EOF);
    match first {
        0xfe if deprecated && packet < LARGEST_PACKET => Role::Ok,
        0xfe if !deprecated && packet < 9 => Role::Eof,
        _ => Role::Bytes,
    }
}

/// The number of columns, which is all that the message has.
fn count(payload: &[u8]) -> Result<u32, Fault> {
    let mut fields = Fields::of(payload, "head of a result");
    let columns = fields.integer()?;
    fields.end()?;
    match columns {
        1..=MOST_COLUMNS => Ok(columns as u32),
        _ => Err(Fault::Columns(columns)),
    }
}
