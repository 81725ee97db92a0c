//! Fields of a message: integers of fixed and variable length, and strings.

use memchr::memchr;

use super::Fault;

/// Reads the fields of one message, whose name is part of its faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    name: &'static str,
}

impl<'a> Fields<'a> {
    /// The fields of these bytes.
    pub(super) const fn of(rest: &'a [u8], name: &'static str) -> Self {
        Self { rest, name }
    }

    /// The fault of a message that ends too early.
    pub(super) const fn truncated(&self) -> Fault {
        Fault::Truncated(self.name)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that are left.
    pub(super) const fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let len = usize::try_from(len).map_err(|_| self.truncated())?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(self.truncated())?;
        self.rest = rest;
        Ok(taken)
    }

    /// All bytes that are left.
    pub(super) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next bytes, as an array.
    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<LEN>().ok_or(self.truncated())?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// An integer of one to nine bytes. The first bytes 0xfb (NULL) and 0xff (ERR) begin none.
    pub(super) fn integer(&mut self) -> Result<u64, Fault> {
        match self.u8()? {
            0xfc => Ok(u64::from(self.u16()?)),
            0xfd => {
                let [a, b, c] = self.array()?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xfe => Ok(u64::from_le_bytes(self.array()?)),
            0xfb | 0xff => Err(self.truncated()),
            small => Ok(u64::from(small)),
        }
    }

    /// A string behind its length.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.integer()?;
        self.take(len)
    }

    /// A string that ends with a zero byte, which is left out.
    pub(super) fn zero_ended(&mut self) -> Result<&'a [u8], Fault> {
        let len = memchr(0, self.rest).ok_or(self.truncated())?;
        let string = &self.rest[..len];
        self.rest = &self.rest[len + 1..];
        Ok(string)
    }

    /// A string that ends with a zero byte or with the message. Old servers leave the last zero byte out.
    pub(super) fn last_zero_ended(&mut self) -> &'a [u8] {
        let len = memchr(0, self.rest).unwrap_or(self.rest.len());
        let string = &self.rest[..len];
        self.rest = self.rest.get(len + 1..).unwrap_or_default();
        string
    }

    /// Fails unless everything was read.
    pub(super) fn end(&self) -> Result<(), Fault> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Fault::Trailing(self.name)),
        }
    }
}

/// Appends an integer of one to nine bytes.
pub(super) fn append_integer(number: u64, out: &mut Vec<u8>) {
    let bytes = number.to_le_bytes();
    match number {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a string behind its length.
pub(super) fn append_string(string: &[u8], out: &mut Vec<u8>) {
    append_integer(string.len() as u64, out);
    out.extend_from_slice(string);
}

#[cfg(test)]
mod tests {
    use super::{Fields, append_integer};

    #[test]
    fn integers_are_read_as_they_were_written() {
        for number in [
            0,
            250,
            251,
            252,
            0xffff,
            0x1_0000,
            0xff_ffff,
            0x100_0000,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            append_integer(number, &mut out);
            let mut fields = Fields::of(&out, "test");
            assert_eq!(fields.integer(), Ok(number));
            assert!(fields.is_empty());
            for end in 0..out.len() {
                assert!(Fields::of(&out[..end], "test").integer().is_err(), "{number}");
            }
        }
    }
}
