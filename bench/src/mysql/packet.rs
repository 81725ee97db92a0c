//! Packets: a length of three bytes, a number, and a payload.

/// Bytes before a payload.
pub(super) const HEAD: usize = 4;

/// A packet that is there as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// Its number, which is 0 for a command and counts up from there.
    pub(super) sequence: u8,
    /// What it says.
    pub(super) payload: &'a [u8],
    /// Bytes up to its end.
    pub(super) length: usize,
}

/// The packet at the start of `bytes`. `None`: it has not ended.
pub(super) fn first(bytes: &[u8]) -> Option<Packet<'_>> {
    let (&[a, b, c, sequence], rest) = bytes.split_first_chunk()?;
    let payload = rest.get(..u32::from_le_bytes([a, b, c, 0]) as usize)?;
    let length = HEAD + payload.len();
    Some(Packet {
        sequence,
        payload,
        length,
    })
}

/// Appends a packet whose payload `write` appends. No payload of a run has the 16 MiB that would need another
/// packet.
pub(super) fn append(sequence: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    write(out);
    let [a, b, c, _] = ((out.len() - start - HEAD) as u32).to_le_bytes();
    out[start..start + HEAD].copy_from_slice(&[a, b, c, sequence]);
}

/// Appends a text behind its length.
pub(super) fn append_text(text: &[u8], out: &mut Vec<u8>) {
    append_length(text.len(), out);
    out.extend_from_slice(text);
}

/// Appends a length of one, three, four or nine bytes.
pub(super) fn append_length(length: usize, out: &mut Vec<u8>) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}
