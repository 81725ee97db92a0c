//! Packets: a length of three bytes, a number, and a payload.

/// Bytes before a payload.
pub(crate) const HEAD: usize = 4;

/// A packet that is there as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    /// Its number, which is 0 for a command and counts up from there.
    pub(crate) sequence: u8,
    /// Its payload.
    pub(crate) payload: &'a [u8],
    /// Bytes up to its end.
    pub(crate) length: usize,
}

/// The packet at the start of `bytes`. `None` if it is incomplete.
pub(crate) fn first(bytes: &[u8]) -> Option<Packet<'_>> {
    let (&[a, b, c, sequence], rest) = bytes.split_first_chunk()?;
    let payload = rest.get(..u32::from_le_bytes([a, b, c, 0]) as usize)?;
    let length = HEAD + payload.len();
    Some(Packet {
        sequence,
        payload,
        length,
    })
}

/// The text behind its length at the start of `bytes`, and what follows. `None`: it is NULL, or not there.
pub(crate) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let more = match first {
        0..=0xfa => 0,
        0xfb | 0xff => return None,
        _ => [2, 3, 8][usize::from(first - 0xfc)],
    };
    let (digits, rest) = rest.split_at_checked(more)?;
    let length = match digits {
        [] => u64::from(first),
        digits => digits
            .iter()
            .rev()
            .fold(0, |number, digit| number << 8 | u64::from(*digit)),
    };
    rest.split_at_checked(usize::try_from(length).ok()?)
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

#[cfg(test)]
mod tests {
    use super::{append_text, text};

    #[test]
    fn a_text_is_read_as_it_was_written_and_not_before_its_end() {
        for length in [0, 250, 251, 65_535, 65_536, 16_777_216] {
            let (whole, mut out) = (vec![b'x'; length], Vec::new());
            append_text(&whole, &mut out);
            assert_eq!(text(&out), Some((&whole[..], &b""[..])));
            assert_eq!(text(&out[..out.len() - 1]), None);
        }
        assert_eq!(text(b"\xfb"), None);
    }
}
