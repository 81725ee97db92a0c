//! A server's description of a prepared statement: its reply to PREPARE, which comes in two parts.

use std::sync::Arc;

use proxima_wire::mysql::{Capabilities, Header, PrepareOk};

use super::settings::Settings;

/// The longest description that is kept, in bytes.
const LONGEST: usize = 16 * 1024;

/// The beginning of a description, with the statement that it is about.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) text: Arc<[u8]>,
    pub(super) settings: Arc<Settings>,
    pub(super) head: PrepareOk,
    pub(super) reply: Vec<u8>,
}

impl Description {
    /// The description of a statement that begins with this part of a reply. `None`: the reply does not begin
    /// so.
    pub(super) fn of((text, settings): (Arc<[u8]>, Arc<Settings>), part: &[u8]) -> Option<Self> {
        let head = part.get(Header::LEN..Header::LEN + PrepareOk::LEN)?;
        Some(Self {
            text,
            settings,
            head: PrepareOk::read(head).ok()?,
            reply: part.to_vec(),
        })
    }

    /// Appends what has come behind the beginning. Returns whether the description is whole then, and short
    /// enough to be kept.
    pub(super) fn ends_with(&mut self, rest: &[u8], capabilities: Capabilities) -> bool {
        if self.reply.len() + rest.len() > LONGEST {
            return false;
        }
        self.reply.extend_from_slice(rest);
        packets(&self.reply) == Some(self.packets(capabilities))
    }

    /// The number of packets that the first one announces: definitions of parameters and of columns, each
    /// followed by an EOF packet where both ends have not agreed to do without.
    fn packets(&self, capabilities: Capabilities) -> usize {
        let end = usize::from(!capabilities.has(Capabilities::DEPRECATE_EOF));
        let definitions = |count: u16| match count {
            0 => 0,
            count => usize::from(count) + end,
        };
        1 + definitions(self.head.parameters) + definitions(self.head.columns)
    }

    /// Bytes of memory that it takes beside the statement.
    pub(super) fn memory(&self) -> usize {
        self.reply.capacity()
    }
}

/// The number of packets in these bytes, if the last one is whole.
fn packets(mut reply: &[u8]) -> Option<usize> {
    let mut count = 0;
    while let Some((header, payload)) = reply.split_first_chunk() {
        reply = payload.get(Header::of(*header).len as usize..)?;
        count += 1;
    }
    reply.is_empty().then_some(count)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proxima_wire::mysql::{Capabilities, append_packet};

    use super::{Description, LONGEST};

    /// The head of a description with these numbers of columns and parameters, and what follows.
    fn reply(columns: u8, parameters: u8, follow: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut head, mut rest) = (Vec::new(), Vec::new());
        append_packet(1, &mut head, |out| {
            out.extend_from_slice(&[0, 7, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0]);
        });
        for number in 0..follow {
            append_packet((number % 256) as u8, &mut rest, |out| {
                out.extend_from_slice(b"definition")
            });
        }
        (head, rest)
    }

    fn is_whole(columns: u8, parameters: u8, follow: usize, capabilities: Capabilities) -> bool {
        let (head, rest) = reply(columns, parameters, follow);
        let key = (Arc::from(&b"SELECT"[..]), Arc::default());
        let mut description = Description::of(key, &head).unwrap();
        description.ends_with(&rest, capabilities)
    }

    #[test]
    fn a_description_is_whole_when_all_that_it_announces_has_come() {
        let (old, new) = (Capabilities::default(), Capabilities::DEPRECATE_EOF);
        for (columns, parameters, follow, capabilities, expected) in [
            (0, 0, 0, old, true),
            (2, 1, 5, old, true),
            (2, 1, 3, new, true),
            (2, 1, 3, old, false),
            (2, 1, 2, new, false),
            (0, 3, 4, old, true),
        ] {
            let found = is_whole(columns, parameters, follow, capabilities);
            assert_eq!(found, expected, "{columns} {parameters} {follow}");
        }
    }

    #[test]
    fn a_long_description_is_not_kept() {
        assert!(!is_whole(255, 0, 1 + LONGEST / 14, Capabilities::default()));
    }
}
