//! The codec's state of one client, which takes no memory where the protocol keeps none.

use std::ops::Deref;

use crate::protocol::Session;

/// The session of a client whose protocol keeps none.
static NONE: Session = Session::NEW;

/// The session of one client; `None` if its protocol keeps no session, so that every call of the codec gets a
/// new one.
pub(super) struct KeptSession(Option<Box<Session>>);

impl KeptSession {
    /// Keeps this session from call to call.
    pub(super) fn kept(session: Session) -> Self {
        Self(Some(Box::new(session)))
    }

    /// Nothing is kept.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// The session for a call of the codec; if none is kept, a new one in `new`.
    #[inline]
    pub(super) fn or<'a>(&'a mut self, new: &'a mut Session) -> &'a mut Session {
        self.0.as_deref_mut().unwrap_or(new)
    }

    /// Bytes of memory that the client fills in it.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |session| session.memory())
    }

    /// The session, if it is kept.
    pub(super) fn get_mut(&mut self) -> Option<&mut Session> {
        self.0.as_deref_mut()
    }
}

impl Deref for KeptSession {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        self.0.as_deref().unwrap_or(&NONE)
    }
}
