//! A server's requests to a client during the login.

use super::{Fault, bytes::Fields, packet::append_packet};

/// The server asks the client to log in by another method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The method's data: for most a salt, with a zero byte behind it.
    pub data: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    /// Reads the payload of the question. One that consists of a single byte asks for the method of servers
    /// before 4.1, which is not served.
    pub fn read(payload: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, "request for another login method");
        match fields.u8()? {
            0xfe if fields.is_empty() => return Err(Fault::Version("login method")),
            0xfe => {}
            other => return Err(Fault::FirstByte(other)),
        }
        Ok(Self {
            method: fields.zero_ended()?,
            data: fields.take_rest(),
        })
    }

    /// Appends the question. `method` must have no zero byte.
    pub fn append(&self, sequence: u8, out: &mut Vec<u8>) {
        append_packet(sequence, out, |out| {
            out.push(0xfe);
            out.extend_from_slice(self.method);
            out.push(0);
            out.extend_from_slice(self.data);
        });
    }
}

/// The server goes on with the method of the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthMore<'a> {
    /// The method's data.
    pub data: &'a [u8],
}

impl<'a> AuthMore<'a> {
    /// Reads the payload of the message.
    pub fn read(payload: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, "message of a login method");
        match fields.u8()? {
            1 => Ok(Self {
                data: fields.take_rest(),
            }),
            other => Err(Fault::FirstByte(other)),
        }
    }

    /// Appends the message.
    pub fn append(&self, sequence: u8, out: &mut Vec<u8>) {
        append_packet(sequence, out, |out| {
            out.push(1);
            out.extend_from_slice(self.data);
        });
    }
}
