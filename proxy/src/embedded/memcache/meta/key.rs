//! Keys and opaques in meta replies.

use base64::{Engine, prelude::BASE64_STANDARD};
use proxima_wire::memcache::KEY;

/// Appends ` k<key>`. A key that came in base64 goes out in base64, with ` b` after it.
pub(super) fn push_key(out: &mut Vec<u8>, key: &[u8], is_binary: bool) {
    out.extend_from_slice(b" k");
    push_encoded(out, key, is_binary);
    if is_binary {
        out.extend_from_slice(b" b");
    }
}

/// Appends the key, in base64 if it came so.
pub(super) fn push_encoded(out: &mut Vec<u8>, key: &[u8], is_binary: bool) {
    // Base64 takes four bytes for three.
    let mut text = [0; KEY.div_ceil(3) * 4];
    match BASE64_STANDARD.encode_slice(key, &mut text) {
        Ok(length) if is_binary => out.extend_from_slice(&text[..length]),
        _ => out.extend_from_slice(key),
    }
}

/// Appends the opaque or the key if `word` asks for one of them. Returns false if it does not.
pub(super) fn push_echo(out: &mut Vec<u8>, word: &[u8], key: &[u8], is_binary: bool) -> bool {
    match word.first() {
        Some(b'O') => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        Some(b'k') => push_key(out, key, is_binary),
        _ => return false,
    }
    true
}
