//! What `proxima mysql show --wait` waits for.

use std::str::FromStr;

/// What is waited for, of a server that is known by its name or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) state: State,
    pub(super) member: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is asked for something.
    Online,
    /// It takes writes.
    Writer,
    /// It is given nothing new, and nothing is left there.
    Drained,
}

/// The text says not what is waited for. The operator has to correct it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected online=MEMBER, writer=MEMBER or drained=MEMBER")]
pub(super) struct NotAwaited;

impl FromStr for Awaited {
    type Err = NotAwaited;

    fn from_str(text: &str) -> Result<Self, NotAwaited> {
        let (state, member) = text.split_once('=').ok_or(NotAwaited)?;
        let state = match state {
            "online" => State::Online,
            "writer" => State::Writer,
            "drained" => State::Drained,
            _ => return Err(NotAwaited),
        };
        let has_name = !member.is_empty();
        has_name
            .then(|| Self {
                state,
                member: member.to_owned(),
            })
            .ok_or(NotAwaited)
    }
}

impl Awaited {
    /// Nothing is left at this member, which drains.
    pub(super) fn drained(member: &str) -> Self {
        Self {
            state: State::Drained,
            member: member.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_said_by_a_word_and_a_member() {
        for text in ["", "online", "online=", "offline=a", "a=online"] {
            assert!(text.parse::<Awaited>().is_err(), "{text}");
        }
        let awaited: Awaited = "drained=10.0.0.1:3306".parse().unwrap();
        assert_eq!(awaited, Awaited::drained("10.0.0.1:3306"));
    }
}
