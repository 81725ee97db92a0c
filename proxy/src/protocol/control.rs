//! What a request may have the whole process do, or say.

/// What a codec may ask of the process, beside the workers, when it
/// [answers](super::ClientSide::consulted) a request about all of it.
pub trait Control {
    /// Has a server end what it does for the client whose session has this number, whichever worker serves
    /// it, on a connection with that client's login. Returns whether the server has agreed; `false` also if
    /// it does nothing for that client, or if the one who asks [may not](super::ServerSide::may_cancel) end
    /// it.
    fn cancel(&self, session: u64) -> bool;

    /// What the process says of its near cache; by default nothing.
    fn near(&self) -> NearCounters {
        NearCounters::default()
    }
}

/// What a near cache says of itself: names, which have no spaces, with their values.
#[derive(Clone, Debug, Default)]
pub struct NearCounters {
    /// The counters of the whole cache.
    pub whole: Vec<(&'static str, u64)>,
    /// The counters of each rule, by its name.
    pub rules: Vec<(String, Vec<(String, String)>)>,
}
