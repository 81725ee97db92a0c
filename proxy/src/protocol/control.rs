//! What a request may have the whole process do.

/// What a codec may ask of the process, beside the workers, when it
/// [answers](super::ClientSide::consulted) a request about all of it.
pub trait Control {
    /// Has a server end what it does for the client whose session has this number, whichever worker serves it.
    /// Returns whether the server has agreed; `false` also if it does nothing for that client.
    fn cancel(&self, session: u64) -> bool;
}
