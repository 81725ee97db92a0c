//! What a session remembers of a client.

use crate::dialect::Session;

/// The state of a client. [`Session::notes`] holds its name and its library, each followed by a zero byte.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State;

impl State {
    const PARTS: usize = 3;

    /// The client's name, its library, or the library's version.
    pub(super) fn note(session: &Session, part: usize) -> &[u8] {
        session
            .notes
            .split(|&byte| byte == 0)
            .nth(part)
            .unwrap_or_default()
    }

    /// Sets the client's name, its library, or the library's version; none has a zero byte.
    pub(super) fn set_note(session: &mut Session, part: usize, text: &[u8]) {
        let parts: Vec<Vec<u8>> = (0..Self::PARTS)
            .map(|other| match other == part {
                true => text.to_vec(),
                false => Self::note(session, other).to_vec(),
            })
            .collect();
        session.notes = parts.join(&0);
    }
}

pub(super) const NAME: usize = 0;
pub(super) const LIBRARY: usize = 1;
pub(super) const LIBRARY_VERSION: usize = 2;
