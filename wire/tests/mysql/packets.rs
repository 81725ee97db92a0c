//! Ends of messages.

use proxima_wire::mysql::{Fault, Header, LARGEST_PACKET, Packets, append_packet};

/// The payloads of messages, read in pieces of this size.
fn messages(bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, Fault> {
    let mut packets = Packets::from(0);
    let (mut out, mut payload) = (Vec::new(), Vec::new());
    for mut piece in bytes.chunks(size) {
        while !piece.is_empty() {
            let read = packets.next(piece)?;
            assert!(read.taken > 0);
            assert!(!read.is_first || payload.is_empty());
            payload.extend_from_slice(read.payload);
            piece = &piece[read.taken..];
            if read.is_last {
                out.push(std::mem::take(&mut payload));
            }
        }
    }
    assert!(packets.is_between() || !payload.is_empty());
    Ok(out)
}

#[test]
fn messages_are_the_same_for_pieces_of_any_size() {
    let (mut bytes, mut sequence) = (Vec::new(), 0);
    let payloads: Vec<Vec<u8>> = [0, 1, 4, 300, 0, 5].map(|len| vec![7; len]).into();
    for payload in &payloads {
        sequence = append_packet(sequence, &mut bytes, |out| out.extend_from_slice(payload));
    }
    for size in 1..bytes.len() + 1 {
        assert_eq!(
            messages(&bytes, size).as_ref(),
            Ok(&payloads),
            "in pieces of {size}"
        );
    }
}

#[test]
fn a_message_of_sixteen_mebibytes_spans_packets() {
    let full = LARGEST_PACKET as usize;
    for (len, packets) in [(full - 1, 1), (full, 2), (full + 1, 2), (2 * full, 3)] {
        let mut bytes = Vec::new();
        let next = append_packet(255, &mut bytes, |out| out.resize(Header::LEN + len, 9));
        assert_eq!(next, 255_u8.wrapping_add(packets));
        assert_eq!(bytes.len(), len + Header::LEN * usize::from(packets));
        let mut reader = Packets::from(255);
        let (mut seen, mut read_on) = (0, &bytes[..]);
        while !read_on.is_empty() {
            let piece = reader.next(&read_on[..read_on.len().min(1 << 20)]).unwrap();
            seen += piece.payload.len();
            assert_eq!(piece.packet as usize, len.min(full));
            read_on = &read_on[piece.taken..];
            assert_eq!(piece.is_last, read_on.is_empty());
        }
        assert_eq!((seen, reader.sequence()), (len, next));
    }
}

#[test]
fn a_packet_with_a_wrong_number_is_a_fault() {
    let mut bytes = Vec::new();
    append_packet(0, &mut bytes, |out| out.push(1));
    append_packet(2, &mut bytes, |out| out.push(1));
    let fault = Fault::Sequence {
        expected: 1,
        found: 2,
    };
    assert_eq!(messages(&bytes, 3), Err(fault));
    assert_eq!(fault.to_string(), "packet number 2 came where number 1 is due");
}
