//! The first message of a client: a login, or a request for TLS.

use super::{
    Capabilities, Fault,
    bytes::{Fields, append_integer, append_string},
    packet::append_packet,
};

const NAME: &str = "login";

/// The most bytes of a client's first message: clients tell attributes of 64 KiB at most.
pub const LONGEST_HELLO: usize = 68 * 1024;

/// The most bytes of the name of a user, a database or a method. Servers allow less.
const LONGEST_NAME: usize = 1024;

/// A client's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hello<'a> {
    /// The client goes on with TLS, and logs in within it.
    Tls(TlsRequest),
    /// The client logs in.
    Login(Login<'a>),
}

/// A client's request for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsRequest {
    /// The capabilities that the client asks for.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes, in bytes.
    pub largest_packet: u32,
    /// The lowest byte of the number of the collation.
    pub collation: u8,
}

/// HandshakeResponse41.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// The capabilities that the client asks for.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes, in bytes.
    pub largest_packet: u32,
    /// The lowest byte of the number of the collation.
    pub collation: u8,
    /// The name of the user.
    pub user: &'a [u8],
    /// The answer to the salt.
    pub answer: &'a [u8],
    /// The database; empty: none. It is sent with [`Capabilities::CONNECT_WITH_DB`] only.
    pub database: &'a [u8],
    /// The login method of the answer; empty: the client names none.
    pub method: &'a [u8],
    /// The client's attributes.
    pub attributes: Attributes<'a>,
}

/// Names and values that a client tells of itself. They have been checked: iterating cannot fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Hello<'a> {
    /// Reads the payload of a client's first message. It must have come as a whole, and have at most
    /// [`LONGEST_HELLO`] bytes.
    pub fn read(payload: &'a [u8]) -> Result<Self, Fault> {
        if payload.len() > LONGEST_HELLO {
            return Err(Fault::TooLong(NAME));
        }
        let mut fields = Fields::of(payload, NAME);
        let low = u32::from(fields.u16()?);
        if !Capabilities(u64::from(low)).has(Capabilities::PROTOCOL_41) {
            return Err(Fault::Version(NAME));
        }
        let low = low | u32::from(fields.u16()?) << 16;
        let (largest_packet, collation) = (fields.u32()?, fields.u8()?);
        fields.array::<19>()?;
        let capabilities = Capabilities::of(low, fields.u32()?);
        if fields.is_empty() && capabilities.has(Capabilities::TLS) {
            return Ok(Self::Tls(TlsRequest {
                capabilities,
                largest_packet,
                collation,
            }));
        }
        let user = name(fields.zero_ended()?)?;
        let answer = answer(&mut fields, capabilities)?;
        let database = match capabilities.has(Capabilities::CONNECT_WITH_DB) {
            true => name(fields.last_zero_ended())?,
            false => &[],
        };
        let method = match capabilities.has(Capabilities::PLUGIN_AUTH) {
            true => name(fields.last_zero_ended())?,
            false => &[],
        };
        let attributes = Attributes::read(&mut fields, capabilities)?;
        Ok(Self::Login(Login {
            capabilities,
            largest_packet,
            collation,
            user,
            answer,
            database,
            method,
            attributes,
        }))
    }
}

impl TlsRequest {
    /// Appends the wish to go on with TLS, whose number is 1.
    pub fn append(&self, out: &mut Vec<u8>) {
        let capabilities = self.capabilities.with(Capabilities::TLS);
        append_packet(1, out, |out| {
            append_head(capabilities, self.largest_packet, self.collation, out);
        });
    }
}

impl Login<'_> {
    /// Appends the login. `sequence`: 1, and 2 behind a [`TlsRequest`]. The names must have no zero byte.
    /// An answer of more than 255 bytes needs [`Capabilities::LONG_AUTH`], and one that may have zero bytes
    /// [`Capabilities::SECURE_CONNECTION`].
    pub fn append(&self, sequence: u8, out: &mut Vec<u8>) {
        append_packet(sequence, out, |out| {
            append_head(self.capabilities, self.largest_packet, self.collation, out);
            out.extend_from_slice(self.user);
            out.push(0);
            append_answer(self.answer, self.capabilities, out);
            if self.capabilities.has(Capabilities::CONNECT_WITH_DB) {
                out.extend_from_slice(self.database);
                out.push(0);
            }
            if self.capabilities.has(Capabilities::PLUGIN_AUTH) {
                out.extend_from_slice(self.method);
                out.push(0);
            }
            if self.capabilities.has(Capabilities::CONNECT_ATTRIBUTES) {
                self.attributes.append(out);
            }
        });
    }
}

impl<'a> Attributes<'a> {
    /// Reads the attributes, which are the last field of a message, if there are any.
    pub(super) fn read(fields: &mut Fields<'a>, capabilities: Capabilities) -> Result<Self, Fault> {
        if !capabilities.has(Capabilities::CONNECT_ATTRIBUTES) || fields.is_empty() {
            return Ok(Self::default());
        }
        Self::of(fields.string()?)
    }

    /// Attributes of which each name and each value stands behind its length, as in a message.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut all = Fields::of(bytes, NAME);
        while !all.is_empty() {
            all.string()?;
            all.string()?;
        }
        Ok(Self(bytes))
    }

    pub(super) fn append(&self, out: &mut Vec<u8>) {
        append_integer(self.0.len() as u64, out);
        out.extend_from_slice(self.0);
    }
}

impl<'a> Iterator for Attributes<'a> {
    /// A name and its value.
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut fields = Fields::of(self.0, NAME);
        let pair = (fields.string().ok()?, fields.string().ok()?);
        self.0 = fields.take_rest();
        Some(pair)
    }
}

/// The answer to the salt, in the form that the client has asked for.
fn answer<'a>(fields: &mut Fields<'a>, capabilities: Capabilities) -> Result<&'a [u8], Fault> {
    if capabilities.has(Capabilities::LONG_AUTH) {
        return fields.string();
    }
    if capabilities.has(Capabilities::SECURE_CONNECTION) {
        let len = fields.u8()?;
        return fields.take(u64::from(len));
    }
    fields.zero_ended()
}

fn append_answer(answer: &[u8], capabilities: Capabilities, out: &mut Vec<u8>) {
    if capabilities.has(Capabilities::LONG_AUTH) {
        append_string(answer, out);
    } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
        let answer = &answer[..answer.len().min(usize::from(u8::MAX))];
        out.push(answer.len() as u8);
        out.extend_from_slice(answer);
    } else {
        out.extend_from_slice(answer);
        out.push(0);
    }
}

/// A name that is no longer than any server allows.
pub(super) fn name(name: &[u8]) -> Result<&[u8], Fault> {
    match name.len() <= LONGEST_NAME {
        true => Ok(name),
        false => Err(Fault::TooLong("name in a login")),
    }
}

fn append_head(capabilities: Capabilities, largest_packet: u32, collation: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&capabilities.low().to_le_bytes());
    out.extend_from_slice(&largest_packet.to_le_bytes());
    out.push(collation);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&capabilities.high().to_le_bytes());
}
