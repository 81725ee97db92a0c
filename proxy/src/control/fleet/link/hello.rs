//! What both ends of a connection say first.

use serde::{Deserialize, Serialize};

use crate::{control::fleet::identity::OwnIdentity, fleet::Stay};

/// The versions of the protocol that this build speaks, the oldest first. Two ends speak the newest that both
/// know, and `Message::version` tells what a message needs.
const VERSIONS: (u16, u16) = (1, 2);
/// What an end speaks that does not say it.
const FIRST: (u16, u16) = (1, 1);

/// What the end that connects says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::control::fleet) struct Hello {
    /// The oldest and the newest version that it speaks.
    pub(in crate::control::fleet) versions: (u16, u16),
    pub(in crate::control::fleet) name: String,
    pub(in crate::control::fleet) identity: u128,
    /// Its fleet; `None`: its directory is empty.
    pub(in crate::control::fleet) fleet: Option<u128>,
    pub(in crate::control::fleet) purpose: Purpose,
}

/// What a connection is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::control::fleet) enum Purpose {
    /// Requests of the control thread.
    Control,
    /// Changes and requests of a worker.
    Data {
        /// The worker that coordinates, at this end.
        worker: u16,
        /// The stay of this end.
        stay: Stay,
        /// The stay of the other end that is meant.
        to: Stay,
    },
}

/// What the end that accepts says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::control::fleet) struct Welcome {
    pub(in crate::control::fleet) name: String,
    pub(in crate::control::fleet) identity: u128,
    pub(in crate::control::fleet) fleet: Option<u128>,
    /// Why the connection is refused.
    pub(in crate::control::fleet) refused: Option<String>,
    /// The oldest and the newest version that it speaks.
    #[serde(default = "first")]
    pub(in crate::control::fleet) versions: (u16, u16),
}

fn first() -> (u16, u16) {
    FIRST
}

impl Welcome {
    pub(in crate::control::fleet) fn of(who: &OwnIdentity, refused: Option<String>) -> Self {
        let facts = who.facts();
        Self {
            name: who.name.clone(),
            identity: facts.identity,
            fleet: facts.fleet,
            refused,
            versions: VERSIONS,
        }
    }

    /// The version that both ends speak.
    pub(in crate::control::fleet) fn version(&self) -> u16 {
        self.versions.1.min(VERSIONS.1)
    }
}

impl Hello {
    pub(in crate::control::fleet) fn of(who: &OwnIdentity, purpose: Purpose) -> Self {
        let facts = who.facts();
        Self {
            versions: VERSIONS,
            name: who.name.clone(),
            identity: facts.identity,
            fleet: facts.fleet,
            purpose,
        }
    }

    /// Why this end refuses to speak; `None`: it does not. A proxy that is in no fleet yet may connect.
    pub(in crate::control::fleet) fn refusal(&self, who: &OwnIdentity) -> Option<String> {
        let facts = who.facts();
        let (oldest, newest) = self.versions;
        if newest < VERSIONS.0 || oldest > VERSIONS.1 {
            return Some(format!(
                "it speaks versions {oldest} to {newest}, and this one {} to {}",
                VERSIONS.0, VERSIONS.1
            ));
        }
        if self.name == who.name && self.identity != facts.identity {
            return Some(format!("two peers have the name {}", self.name));
        }
        let is_foreign = matches!((self.fleet, facts.fleet), (Some(its), Some(ours)) if its != ours);
        (is_foreign && self.purpose != Purpose::Control).then(|| "it belongs to another fleet".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a build says that answers so.
    fn version_with(versions: &str) -> u16 {
        let text = format!(r#"{{"name": "a", "identity": 1, "fleet": null, "refused": null{versions}}}"#);
        serde_json::from_str::<Welcome>(&text)
            .expect("a welcome")
            .version()
    }

    #[test]
    fn two_builds_speak_the_newest_version_that_both_know() {
        assert_eq!(version_with(""), 1, "the first build does not say its versions");
        assert_eq!(version_with(r#", "versions": [1, 1]"#), 1);
        assert_eq!(version_with(r#", "versions": [1, 9]"#), VERSIONS.1);
    }
}
