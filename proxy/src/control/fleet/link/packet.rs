//! Texts with their length before them.

use std::{io, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

/// The longest text, in bytes: what a peer missed is at most 10,000 keys.
const LIMIT: usize = 16 << 20;
/// The longest word of a handshake: it comes from somebody who may be anybody.
pub(super) const HELLO: usize = 64 << 10;

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A value as it stands in a packet.
pub(in crate::control::fleet) type Text = RawValue;

/// Writes a value that goes into many packets.
pub(in crate::control::fleet) fn text(value: &impl Serialize) -> io::Result<Arc<Text>> {
    Ok(Arc::from(to_raw_value(value)?))
}

/// The bytes of a value.
pub(in crate::control::fleet) fn write(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = bytes.len() - 4;
    if length > LIMIT {
        return Err(invalid(format!(
            "a text of {length} bytes is too long to be sent"
        )));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Takes the first value out of the bytes; `None`: some of it is missing.
pub(super) fn take<T: DeserializeOwned>(bytes: &mut Vec<u8>, limit: usize) -> io::Result<Option<T>> {
    let Some(length) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > limit {
        return Err(invalid(format!(
            "a text of {length} bytes; at most {limit} are allowed"
        )));
    }
    let Some(text) = bytes.get(4..4 + length) else {
        return Ok(None);
    };
    let value = serde_json::from_slice(text)?;
    bytes.drain(..4 + length);
    Ok(Some(value))
}

/// Takes all values out of the bytes that are all there.
pub(in crate::control::fleet) fn take_all<T: DeserializeOwned>(bytes: &mut Vec<u8>) -> io::Result<Vec<T>> {
    let mut all = Vec::new();
    while let Some(value) = take(bytes, LIMIT)? {
        all.push(value);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn text_is_taken_when_it_is_all_there_and_a_long_one_never() {
        let bytes = write(&("a", 1)).unwrap();
        for cut in 0..bytes.len() {
            let mut part = bytes[..cut].to_vec();
            assert_eq!(take::<(String, u8)>(&mut part, HELLO).unwrap(), None);
        }
        let mut two = [bytes.clone(), bytes[..3].to_vec()].concat();
        assert_eq!(
            take_all::<(String, u8)>(&mut two).unwrap(),
            vec![("a".to_owned(), 1)]
        );
        assert_eq!(two, bytes[..3]);
        assert!(take::<u8>(&mut vec![255; 4], LIMIT).is_err());
        assert!(take::<u8>(&mut vec![1, 0, 0, 0, b'x'], LIMIT).is_err());
    }
}
