//! The Redis codec's state for a client.

use crate::protocol::{EndState, Session};

/// The state of a client. One that sends ordinary requests alone has none.
#[derive(Default)]
struct State {
    /// The bits below that are set.
    bits: u32,
    /// The client's name, its library, and the library's version.
    notes: [Vec<u8>; 3],
    /// Commands of a transaction that are answered already, and are sent before the first one with a key.
    held: Vec<u8>,
    /// The login that the client gets if the server agrees; `None` if no server is asked.
    pending: Option<Vec<u8>>,
}

impl EndState for State {
    fn memory(&self) -> usize {
        let notes: usize = self.notes.iter().map(Vec::capacity).sum();
        notes + self.held.capacity() + self.pending.as_ref().map_or(0, Vec::capacity)
    }
}

pub(super) const NAME: usize = 0;
pub(super) const LIBRARY: usize = 1;
pub(super) const LIBRARY_VERSION: usize = 2;

/// The client is between `MULTI` and `EXEC`.
pub(super) const MULTI: u32 = 1;
/// A command of the transaction was rejected.
pub(super) const DOOMED: u32 = 1 << 1;
/// The server has the beginning of the transaction.
pub(super) const BOUND: u32 = 1 << 2;
/// The server watches keys.
pub(super) const WATCHING: u32 = 1 << 3;
/// Requests on the client's own lane may not be answered yet.
pub(super) const SETTLING: u32 = 1 << 4;
/// The client has not said the listener's password.
pub(super) const LOCKED: u32 = 1 << 5;
/// The client has a lane for good, on which the server keeps more than a transaction.
pub(super) const OWNING: u32 = 1 << 6;
/// All of them.
pub(super) const ANY: u32 = u32::MAX;
/// The server keeps something for the client as long as one of these is set.
pub(super) const KEEPS: u32 = BOUND | WATCHING | OWNING;

fn of(session: &Session) -> Option<&State> {
    session.state.get()
}

/// The client's name, its library, or the library's version.
pub(super) fn note(session: &Session, part: usize) -> &[u8] {
    of(session).map_or(b"", |state| &state.notes[part])
}

/// Sets the client's name, its library, or the library's version.
pub(super) fn set_note(session: &mut Session, part: usize, text: &[u8]) {
    session
        .state
        .change(|state: &mut State| state.notes[part] = text.to_vec());
}

/// The commands of a transaction that are held until its server is known.
pub(super) fn held(session: &Session) -> &[u8] {
    of(session).map_or(b"", |state| &state.held)
}

/// Holds a command of a transaction.
pub(super) fn hold(session: &mut Session, message: &[u8]) {
    session
        .state
        .change(|state: &mut State| state.held.extend_from_slice(message));
}

/// Takes the commands that were held.
pub(super) fn take_held(session: &mut Session) -> Vec<u8> {
    let state: Option<&mut State> = session.state.get_mut();
    state
        .map(|state| std::mem::take(&mut state.held))
        .unwrap_or_default()
}

/// Notes the login for which the server is asked.
pub(super) fn set_pending(session: &mut Session, login: Vec<u8>) {
    session
        .state
        .change(|state: &mut State| state.pending = Some(login));
}

/// Takes the login for which the server was asked; `None` if no server was asked.
pub(super) fn take_pending(session: &mut Session) -> Option<Vec<u8>> {
    session.state.get_mut::<State>()?.pending.take()
}

/// Sets bits of the state.
pub(super) fn set(session: &mut Session, bits: u32) {
    session.state.change(|state: &mut State| state.bits |= bits);
    note_change(session);
}

/// Clears bits of the state.
pub(super) fn clear(session: &mut Session, bits: u32) {
    if let Some(state) = session.state.get_mut::<State>() {
        state.bits &= !bits;
    }
    note_change(session);
}

/// Notes a change of what the client's requests depend on.
pub(super) fn note_change(session: &mut Session) {
    session.plans_all = is(session, ANY) || session.has_subscriptions;
}

/// Is one of these bits set?
pub(super) fn is(session: &Session, bits: u32) -> bool {
    of(session).is_some_and(|state| state.bits & bits != 0)
}
