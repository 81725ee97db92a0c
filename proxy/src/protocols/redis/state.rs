//! What a session remembers of a client.

use crate::protocol::Session;

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

/// The client is between `MULTI` and `EXEC`.
pub(super) const MULTI: u32 = 1;
/// A command of the transaction was refused.
pub(super) const DOOMED: u32 = 1 << 1;
/// The server has the beginning of the transaction.
pub(super) const BOUND: u32 = 1 << 2;
/// The server watches keys.
pub(super) const WATCHING: u32 = 1 << 3;
/// What was sent on the client's own lane may not be answered yet.
pub(super) const SETTLING: u32 = 1 << 4;
/// The client has not said the listener's password.
pub(super) const LOCKED: u32 = 1 << 5;
/// The client has a lane for good, on which the server keeps more than a transaction.
pub(super) const OWNING: u32 = 1 << 6;
/// What the server keeps for the client as long as one of these is set.
pub(super) const KEEPS: u32 = BOUND | WATCHING | OWNING;

/// Sets bits of the state.
pub(super) fn set(session: &mut Session, bits: u32) {
    session.step |= bits;
    note_change(session);
}

/// Clears bits of the state.
pub(super) fn clear(session: &mut Session, bits: u32) {
    session.step &= !bits;
    note_change(session);
}

/// Notes a change of what the client's requests depend on.
pub(super) fn note_change(session: &mut Session) {
    session.plans_all = session.step != 0 || session.has_subscriptions;
}

pub(super) fn is(session: &Session, bit: u32) -> bool {
    session.step & bit != 0
}
