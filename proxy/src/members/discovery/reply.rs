//! The answer to the question for a list: `CONFIG cluster 0 LENGTH`, the list, `END`.

use memchr::memchr;
use proxima_wire::memcache::Discovery;

use super::{BadList, NodeList, number};

/// Bytes of the longest answer.
pub const LONGEST: usize = 2 << 20;
/// Bytes of the longest line before a list.
const HEAD: usize = 256;
const END: &[u8] = b"\r\nEND\r\n";

/// The whole answer to a question, with this list.
pub fn answer(question: Discovery, list: &NodeList) -> Vec<u8> {
    let text = list.text();
    let mut answer = format!("{}{}\r\n{text}", question.head(), text.len()).into_bytes();
    answer.extend_from_slice(END);
    answer
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The list.
    List(NodeList),
    /// There is no list.
    Nothing,
    /// The server does not know the question.
    Unknown,
}

/// Why bytes are no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReply {
    /// It is a record of TLS.
    #[error("it wants TLS: the pool needs `tls`")]
    Tls,
    /// The server refuses the question.
    #[error("it answers `{0}`")]
    Refused(String),
    /// The first line is another one.
    #[error("it answers nonsense: `{0}`")]
    Head(String),
    /// More than any list has.
    #[error("its answer is longer than {LONGEST} bytes")]
    TooLong,
    /// The list does not end where it should.
    #[error("its answer is not as long as it says")]
    Length,
    /// The contents of the answer are no list.
    #[error(transparent)]
    List(#[from] BadList),
}

/// Reads the answer to this question from the bytes that have come. `None` as long as it is incomplete.
///
/// # Errors
/// No bytes that follow could make an answer of it.
pub fn read(question: Discovery, received: &[u8]) -> Result<Option<Reply>, BadReply> {
    // An alert or a handshake, and the first byte of every version of TLS.
    if matches!(received, [0x15 | 0x16, 3, ..]) {
        return Err(BadReply::Tls);
    }
    let shown = |line: &[u8]| {
        String::from_utf8_lossy(&line[..line.len().min(80)])
            .escape_debug()
            .to_string()
    };
    let Some(end) = memchr(b'\n', &received[..received.len().min(HEAD)]) else {
        return match received.len() < HEAD {
            true => Ok(None),
            false => Err(BadReply::Head(shown(received))),
        };
    };
    let line = received[..end].trim_ascii_end();
    let Some(length) = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.strip_prefix(question.head()))
    else {
        return match line {
            b"END" => Ok(Some(Reply::Nothing)),
            b"ERROR" => Ok(Some(Reply::Unknown)),
            line if line.starts_with(b"CLIENT_ERROR") => Ok(Some(Reply::Unknown)),
            line if line.starts_with(b"SERVER_ERROR") => Err(BadReply::Refused(shown(line))),
            line => Err(BadReply::Head(shown(line))),
        };
    };
    let length = number(length).ok_or_else(|| BadReply::Head(shown(line)))?;
    let length = usize::try_from(length).map_err(|_| BadReply::TooLong)?;
    if length > LONGEST {
        return Err(BadReply::TooLong);
    }
    let rest = &received[end + 1..];
    let Some((list, behind)) = rest.split_at_checked(length) else {
        return Ok(None);
    };
    match behind {
        END => Ok(Some(Reply::List(NodeList::parse(list)?))),
        some if END.starts_with(some) => Ok(None),
        _ => Err(BadReply::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "12\na|10.0.0.1|11211 b||11211\n";

    fn with_length(length: usize, list: &str, end: &str) -> Vec<u8> {
        format!("CONFIG cluster 0 {length}\r\n{list}{end}").into_bytes()
    }

    #[test]
    fn whole_answer_is_a_list_and_no_part_of_it_is() {
        let list = NodeList::parse(LIST.as_bytes()).unwrap();
        for question in Discovery::ALL {
            let whole = answer(question, &list);
            for end in 0..whole.len() {
                assert_eq!(read(question, &whole[..end]), Ok(None), "{end}");
            }
            assert_eq!(read(question, &whole), Ok(Some(Reply::List(list.clone()))));
        }
        let written = answer(Discovery::Config, &list);
        assert_eq!(written, with_length(LIST.len(), LIST, "\r\nEND\r\n"));
    }

    #[test]
    fn other_answers_are_told_apart() {
        let read = |bytes: &[u8]| read(Discovery::Config, bytes);
        for (bytes, reply) in [
            (&b"END\r\n"[..], Reply::Nothing),
            (b"ERROR\r\n", Reply::Unknown),
            (b"CLIENT_ERROR bad\r\n", Reply::Unknown),
        ] {
            assert_eq!(read(bytes), Ok(Some(reply)));
        }
        let refused = [
            (b"\x15\x03\x01\0\x02\x02F".to_vec(), "wants TLS"),
            (b"\x16\x03\x03".to_vec(), "wants TLS"),
            (b"SERVER_ERROR no\r\n".to_vec(), "it answers `SERVER_ERROR no`"),
            (b"HTTP/1.1 400 Bad\r\n".to_vec(), "nonsense: `HTTP/1.1 400 Bad`"),
            (vec![b'x'; HEAD], "nonsense"),
            (b"CONFIG cluster 0 \r\n".to_vec(), "nonsense"),
            (b"CONFIG cluster 0 -1\r\n".to_vec(), "nonsense"),
            (b"CONFIG cluster 0 1 1\r\n".to_vec(), "nonsense"),
            (b"VALUE k 0 1\r\n1".to_vec(), "nonsense"),
            (with_length(100 << 20, "", ""), "longer than"),
            (with_length(usize::MAX, "", ""), "longer than"),
            (with_length(LIST.len() - 1, LIST, "\r\nEND\r\n"), "not as long"),
            (with_length(LIST.len() + 1, LIST, "\r\nEND\r\n"), "not as long"),
            (with_length(LIST.len(), LIST, "\r\nEND\r\nx"), "not as long"),
            (with_length(LIST.len(), LIST, "\r\nVALUE"), "not as long"),
            (with_length(2, "1\n", "\r\nEND\r\n"), "names no node"),
        ];
        let mut wrong = Vec::new();
        for (bytes, message) in refused {
            let error = read(&bytes).map_err(|error| error.to_string());
            if !error.as_ref().is_err_and(|error| error.contains(message)) {
                wrong.push((message, error));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
