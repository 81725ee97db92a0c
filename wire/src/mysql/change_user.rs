//! COM_CHANGE_USER: a login on a connection that has one.

use super::{
    Attributes, Capabilities, Fault,
    bytes::Fields,
    hello::{LONGEST_HELLO, name},
    packet::append_packet,
};

const NAME: &str = "change of the user";

/// A client's request to log in anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The name of the user.
    pub user: &'a [u8],
    /// The answer to the salt of the greeting, at most 255 bytes.
    pub answer: &'a [u8],
    /// The database; empty: none.
    pub database: &'a [u8],
    /// The number of the collation. `None` if the client names no collation: the server takes its default.
    pub collation: Option<u16>,
    /// The login method of the answer; empty: the client names none.
    pub method: &'a [u8],
    /// The client's attributes.
    pub attributes: Attributes<'a>,
}

impl<'a> ChangeUser<'a> {
    /// The first byte of the message.
    const NUMBER: u8 = 0x11;

    /// Reads the payload of the whole message. `capabilities`: what both ends have agreed on.
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Fault> {
        if payload.len() > LONGEST_HELLO {
            return Err(Fault::TooLong(NAME));
        }
        let mut fields = Fields::of(payload, NAME);
        match fields.u8()? {
            Self::NUMBER => {}
            other => return Err(Fault::FirstByte(other)),
        }
        let user = name(fields.zero_ended()?)?;
        let len = fields.u8()?;
        let answer = fields.take(u64::from(len))?;
        let database = name(fields.last_zero_ended())?;
        let collation = match fields.len() {
            0 => None,
            _ => Some(fields.u16()?),
        };
        let method = match capabilities.has(Capabilities::PLUGIN_AUTH) {
            true => name(fields.last_zero_ended())?,
            false => &[],
        };
        let attributes = Attributes::read(&mut fields, capabilities)?;
        Ok(Self {
            user,
            answer,
            database,
            collation,
            method,
            attributes,
        })
    }

    /// Appends the message, whose number is 0. The names must have no zero byte. Only the first 255 bytes of
    /// an answer are used.
    pub fn append(&self, capabilities: Capabilities, out: &mut Vec<u8>) {
        let answer = &self.answer[..self.answer.len().min(usize::from(u8::MAX))];
        append_packet(0, out, |out| {
            out.push(Self::NUMBER);
            out.extend_from_slice(self.user);
            out.extend_from_slice(&[0, answer.len() as u8]);
            out.extend_from_slice(answer);
            out.extend_from_slice(self.database);
            out.push(0);
            let Some(collation) = self.collation else { return };
            out.extend_from_slice(&collation.to_le_bytes());
            if capabilities.has(Capabilities::PLUGIN_AUTH) {
                out.extend_from_slice(self.method);
                out.push(0);
            }
            if capabilities.has(Capabilities::CONNECT_ATTRIBUTES) {
                self.attributes.append(out);
            }
        });
    }
}
