//! The results of requests, by name.

use proxima_wire::message::Outcome;

/// All outcomes with their names in metrics.
pub const OUTCOMES: [(Outcome, &str); 20] = [
    (Outcome::Ok, "ok"),
    (Outcome::Stored, "stored"),
    (Outcome::Exists, "exists"),
    (Outcome::Deleted, "deleted"),
    (Outcome::Found, "found"),
    (Outcome::NotFound, "not_found"),
    (Outcome::NotStored, "not_stored"),
    (Outcome::Timeout, "timeout"),
    (Outcome::ConnectTimeout, "connect_timeout"),
    (Outcome::ConnectError, "connect_error"),
    (Outcome::Busy, "busy"),
    (Outcome::Shutdown, "shutdown"),
    (Outcome::TryAgain, "try_again"),
    (Outcome::Ejected, "ejected"),
    (Outcome::Deadline, "deadline"),
    (Outcome::Overloaded, "overloaded"),
    (Outcome::RemoteError, "remote_error"),
    (Outcome::LocalError, "local_error"),
    (Outcome::ClientError, "client_error"),
    (Outcome::Touched, "touched"),
];
