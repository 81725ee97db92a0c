//! Base64 as meta keys use it: padded groups of four, the standard alphabet.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Like memcached, takes a last group whose unused bits are not zero. Such a key comes back from the server in another
/// form than the client wrote it, but it names the same item.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The bytes that `text` stands for; none if it is no base64, or if they are more than `into` takes.
pub(super) fn decode<'a>(text: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let len = ENGINE.decode_slice(text, into).ok()?;
    into.get(..len)
}

/// `key` as it stands on a line; none if that is longer than `into` (in 250 bytes, which a key may have, 186
/// are the most that fit).
pub(super) fn encode<'a>(key: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let len = ENGINE.encode_slice(key, into).ok()?;
    into.get(..len)
}
