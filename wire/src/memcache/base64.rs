//! Base64 as meta keys use it: padded groups of four, the standard alphabet.

use super::key::KEY;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Like memcached, takes a last group whose unused bits are not zero. Such a key comes back from the server in another
/// form than the client wrote it, but it names the same item.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Can `text` be decoded to at least one byte?
#[cold]
pub(super) fn is_valid(text: &[u8]) -> bool {
    decode(text, &mut [0; KEY]).is_some_and(|key| !key.is_empty())
}

/// The bytes that `text` stands for.
pub(super) fn decode<'a>(text: &[u8], into: &'a mut [u8; KEY]) -> Option<&'a [u8]> {
    let len = ENGINE.decode_slice(text, into).ok()?;
    into.get(..len)
}

/// `key` as it stands on a line; none if that is longer than a key may be (186 bytes are the longest that fit).
pub(super) fn encode<'a>(key: &[u8], into: &'a mut [u8; KEY]) -> Option<&'a [u8]> {
    let len = ENGINE.encode_slice(key, into).ok()?;
    into.get(..len)
}
