//! Questions and orders of a request to the whole process.

/// The process as a codec may ask it, beside the workers, when it [answers](super::ClientSide::consulted) a
/// request about all of it.
pub trait Control {
    /// Has a server end what it does for the client whose session has this number, whichever worker serves
    /// it, on a connection with that client's login; or ends that client as well. Returns `false` if there is
    /// no such client, if the one who asks [may not](super::ServerSide::may_cancel) end what it does, or if
    /// the server does not agree.
    fn cancel(&self, session: u64, ending: Ending) -> bool;

    /// The counters of the process's near cache; by default none.
    fn near(&self) -> NearCounters {
        NearCounters::default()
    }
}

/// What is ended of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// What a server does for it now, if it does anything.
    Request,
    /// The client's connection, and with it what a server does.
    Client,
}

/// The counters of a near cache: names, which have no spaces, with their values.
#[derive(Clone, Debug, Default)]
pub struct NearCounters {
    /// The counters of the whole cache.
    pub whole: Vec<(&'static str, u64)>,
    /// The counters of each rule, by its name.
    pub rules: Vec<(String, Vec<(String, String)>)>,
}
