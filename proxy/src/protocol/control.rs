//! Questions and orders of a request to the whole process.

/// The process as a codec may ask it, beside the workers, when it [answers](super::ClientSide::consulted) a
/// request about all of it.
pub trait Control {
    /// Has a server end what it does for the client whose session has this number, whichever worker serves
    /// it, on a connection with that client's login. Returns whether the server has agreed; `false` also if
    /// it does nothing for that client, or if the one who asks [may not](super::ServerSide::may_cancel) end
    /// it.
    fn cancel(&self, session: u64) -> bool;

    /// The counters of the process's near cache; by default none.
    fn near(&self) -> NearCounters {
        NearCounters::default()
    }
}

/// The counters of a near cache: names, which have no spaces, with their values.
#[derive(Clone, Debug, Default)]
pub struct NearCounters {
    /// The counters of the whole cache.
    pub whole: Vec<(&'static str, u64)>,
    /// The counters of each rule, by its name.
    pub rules: Vec<(String, Vec<(String, String)>)>,
}
