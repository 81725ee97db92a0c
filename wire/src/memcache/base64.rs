//! Base64 as meta keys use it: padded groups of four, the standard alphabet.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Like memcached, this accepts a last group whose unused bits are not zero. The server returns such a key in
/// another form than the client wrote it, but it names the same item.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes `text`. `None` if it is no base64, or has more bytes than `into`.
pub(super) fn decode<'a>(text: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let len = ENGINE.decode_slice(text, into).ok()?;
    into.get(..len)
}

/// Encodes `key` as it stands on a line. `None`: the result is longer than `into`. At most 186 bytes fit into
/// the 250 that a key may have.
pub(super) fn encode<'a>(key: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let len = ENGINE.encode_slice(key, into).ok()?;
    into.get(..len)
}
