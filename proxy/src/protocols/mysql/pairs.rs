//! Rows of two short texts in a reply: names and values, or two numbers.

use proxima_wire::mysql::Header;

/// Gives each row of two texts to `take`.
pub(super) fn each_pair(mut packets: &[u8], mut take: impl FnMut(&[u8], &[u8])) {
    while let Some((header, rest)) = packets.split_first_chunk() {
        let len = (Header::of(*header).len as usize).min(rest.len());
        let (payload, behind) = rest.split_at(len);
        packets = behind;
        // Names and values are short: their lengths are one byte.
        let Some((name, rest)) = text(payload) else {
            continue;
        };
        let Some((value, [])) = text(rest) else { continue };
        take(name, value);
    }
}

fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    (len < 0xfb).then(|| rest.split_at_checked(usize::from(len)))?
}
