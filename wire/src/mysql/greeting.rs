//! The first message of a server: handshake version 10.

use super::{Capabilities, Fault, Status, bytes::Fields, packet::append_packet};

const NAME: &str = "greeting";

/// Bytes of a salt, none of which is zero.
pub const SALT: usize = 20;

/// The capabilities that this codec understands. A proxy offers no other ones, and asks for no other ones.
pub const SPOKEN: Capabilities = Capabilities(
    0x01ff_ffff & !Capabilities::COMPRESS.0 & !Capabilities::LOCAL_FILES.0
        // CLIENT_NO_SCHEMA and CLIENT_ODBC, which mean nothing today.
        & !(1 << 4) & !(1 << 6)
        // CLIENT_IGNORE_SIGPIPE and CLIENT_RESERVED, which concern the client's program alone.
        & !(1 << 12) & !(1 << 14),
);

/// A server's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// The version, for MariaDB with `5.5.5-` before it.
    pub version: &'a [u8],
    /// The number of the connection, as KILL takes it.
    pub connection: u32,
    /// The salt of the login method.
    pub salt: [u8; SALT],
    /// The capabilities that the server offers.
    pub capabilities: Capabilities,
    /// The lowest byte of the default collation's number.
    pub collation: u8,
    /// The state of the connection.
    pub status: Status,
    /// The login method that the salt is for; empty: the server names none.
    pub method: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Reads the payload of a greeting. A server that rejects the client at once sends an ERR packet instead,
    /// which begins with 0xff.
    pub fn read(payload: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, NAME);
        match fields.u8()? {
            10 => {}
            9 => return Err(Fault::Version(NAME)),
            other => return Err(Fault::FirstByte(other)),
        }
        let version = fields.zero_ended()?;
        let connection = fields.u32()?;
        let mut salt = [0; SALT];
        salt[..8].copy_from_slice(&fields.array::<8>()?);
        fields.u8()?;
        let lower = fields.u16()?;
        if fields.is_empty() || !Capabilities(u64::from(lower)).has(Capabilities::PROTOCOL_41) {
            return Err(Fault::Version(NAME));
        }
        let (collation, status, upper) = (fields.u8()?, Status(fields.u16()?), fields.u16()?);
        let salt_len = fields.u8()?;
        fields.array::<6>()?;
        let high = fields.u32()?;
        let capabilities = Capabilities::of(u32::from(upper) << 16 | u32::from(lower), high);
        // The second part has 13 bytes or more with its zero byte. Longer salts belong to no known method.
        let second = fields.take(u64::from(salt_len.saturating_sub(8).max(13)))?;
        salt[8..].copy_from_slice(&second[..SALT - 8]);
        let method = match capabilities.has(Capabilities::PLUGIN_AUTH) {
            true => fields.last_zero_ended(),
            false => &[],
        };
        Ok(Self {
            version,
            connection,
            salt,
            capabilities,
            collation,
            status,
            method,
        })
    }

    /// Appends the greeting, whose number is 0. `version` and `method` must have no zero byte.
    pub fn append(&self, out: &mut Vec<u8>) {
        let [a, b, c, d] = self.capabilities.low().to_le_bytes();
        append_packet(0, out, |out| {
            out.push(10);
            out.extend_from_slice(self.version);
            out.push(0);
            out.extend_from_slice(&self.connection.to_le_bytes());
            out.extend_from_slice(&self.salt[..8]);
            out.extend_from_slice(&[0, a, b, self.collation]);
            out.extend_from_slice(&self.status.0.to_le_bytes());
            out.extend_from_slice(&[c, d, SALT as u8 + 1]);
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&self.capabilities.high().to_le_bytes());
            out.extend_from_slice(&self.salt[8..]);
            out.push(0);
            if self.capabilities.has(Capabilities::PLUGIN_AUTH) {
                out.extend_from_slice(self.method);
                out.push(0);
            }
        });
    }
}
