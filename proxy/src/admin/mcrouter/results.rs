//! `result_NAME`, `result_NAME_all` and the like: how requests ended. Without `_all` it is the reply to the
//! client that counts, and with it each request to a server. `_count` is a number, and the rest are rates.

use proxima_wire::message::Outcome::{
    self, Busy, ClientError, ConnectError, ConnectTimeout, Deadline, Ejected, LocalError, Overloaded,
    RemoteError, Shutdown, Timeout, TryAgain,
};

use super::facts::Facts;

/// All errors.
pub(super) const ERRORS: &[Outcome] = &[
    Timeout,
    ConnectTimeout,
    ConnectError,
    Busy,
    Shutdown,
    TryAgain,
    Ejected,
    Deadline,
    Overloaded,
    RemoteError,
    LocalError,
    ClientError,
];

/// The names of results in figures, and what counts as each.
const KINDS: [(&str, &[Outcome]); 10] = [
    ("error", ERRORS),
    ("connect_error", &[ConnectError]),
    ("connect_timeout", &[ConnectTimeout]),
    ("data_timeout", &[Timeout]),
    ("busy", &[Busy]),
    ("tko", &[Ejected]),
    ("client_error", &[ClientError]),
    ("local_error", &[LocalError, Overloaded]),
    ("remote_error", &[RemoteError]),
    ("deadline_exceeded_error", &[Deadline]),
];

/// The counter of a figure, and whether its rate is told. `None`: the figure is none of results.
pub(super) fn counter(name: &str, facts: &Facts<'_>) -> Option<(u64, bool)> {
    let name = name.strip_prefix("result_")?;
    let (name, is_rate) = match name.strip_suffix("_count") {
        Some(name) => (name, false),
        None => (name, true),
    };
    let (kind, is_of_servers) = match name.strip_suffix("_all") {
        Some(kind) => (kind, true),
        None => (name, false),
    };
    let (_, outcomes) = KINDS.iter().find(|(known, _)| *known == kind)?;
    let count = match is_of_servers {
        true => facts.met(outcomes),
        false => facts.ended(outcomes),
    };
    Some((count, is_rate))
}

#[cfg(test)]
mod tests {
    use super::ERRORS;

    #[test]
    fn every_error_is_counted_and_nothing_else() {
        for (outcome, name) in crate::protocol::OUTCOMES {
            assert_eq!(ERRORS.contains(&outcome), outcome.is_error(), "{name}");
        }
    }
}
