//! Members' offers of version and capabilities, and the greeting of clients that follows from them.

use std::sync::Arc;

use proxima_wire::mysql::{Capabilities, Greeting, SPOKEN};

/// The version that clients are greeted with before any server has told its own.
const VERSION: &[u8] = b"5.5.5-10.11.0-MariaDB";
/// `utf8mb4_general_ci`.
const COLLATION: u8 = 45;

/// A server's version and capabilities, or those that are offered to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) capabilities: Capabilities,
    pub(super) collation: u8,
    /// A server has told this: its way of reading texts before any statement is known then.
    pub(super) ansi_quotes: bool,
    pub(super) no_backslash_escapes: bool,
    pub(super) version: Vec<u8>,
}

impl Offer {
    /// The offer in a server's greeting. Its variables are told later.
    pub(super) fn of(greeting: &Greeting<'_>) -> Self {
        Self {
            capabilities: greeting.capabilities,
            collation: greeting.collation,
            ansi_quotes: false,
            no_backslash_escapes: false,
            version: greeting.version.to_vec(),
        }
    }

    /// The offer in words, which [`Self::decode`] reads.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.capabilities.0.to_le_bytes());
        out.push(self.collation);
        out.extend([u8::from(self.ansi_quotes), u8::from(self.no_backslash_escapes)]);
        out.extend_from_slice(&self.version);
    }

    /// The offer of these words; `None` if there are no words.
    pub(super) fn decode(words: &[u8]) -> Option<Self> {
        let (capabilities, rest) = words.split_first_chunk::<8>()?;
        let (&[collation, ansi_quotes, no_backslash_escapes], version) = rest.split_first_chunk::<3>()?;
        Some(Self {
            capabilities: Capabilities(u64::from_le_bytes(*capabilities)),
            collation,
            ansi_quotes: ansi_quotes != 0,
            no_backslash_escapes: no_backslash_escapes != 0,
            version: version.to_vec(),
        })
    }

    /// The offer to clients: the version of the first member that has told one, and what all members have
    /// that have told it.
    pub(super) fn joined(said: &[Arc<[u8]>], configured: Option<&str>) -> Self {
        let mut told = said.iter().filter_map(|words| Self::decode(words));
        let first = told.next().unwrap_or_else(|| Self {
            capabilities: SPOKEN,
            collation: COLLATION,
            ansi_quotes: false,
            no_backslash_escapes: false,
            version: configured.map_or(VERSION, str::as_bytes).to_vec(),
        });
        let all = told.fold(first, |all, other| Self {
            capabilities: all.capabilities.both(other.capabilities),
            ansi_quotes: all.ansi_quotes || other.ansi_quotes,
            no_backslash_escapes: all.no_backslash_escapes || other.no_backslash_escapes,
            ..all
        });
        // Without this bit clients look for capabilities that only MariaDB has. None of them is offered.
        let capabilities = all.capabilities.both(SPOKEN).with(Capabilities::MYSQL);
        Self { capabilities, ..all }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proxima_wire::mysql::Capabilities;

    use super::Offer;

    fn said(version: &str, capabilities: Capabilities) -> Arc<[u8]> {
        let offer = Offer {
            capabilities,
            collation: 8,
            ansi_quotes: false,
            no_backslash_escapes: false,
            version: version.as_bytes().to_vec(),
        };
        let mut words = Vec::new();
        offer.encode(&mut words);
        assert_eq!(Offer::decode(&words), Some(offer));
        words.into()
    }

    #[test]
    fn only_what_every_member_has_is_offered_in_the_version_of_the_first() {
        let both = Capabilities::DEPRECATE_EOF.with(Capabilities::FOUND_ROWS);
        let all = [
            Arc::from(&b""[..]),
            said("9.7.4", both.with(Capabilities::COMPRESS)),
            said("8.0.1", Capabilities::FOUND_ROWS),
        ];
        let offer = Offer::joined(&all, Some("1.2.3"));
        assert_eq!(offer.version, b"9.7.4");
        assert_eq!(
            offer.capabilities,
            Capabilities::FOUND_ROWS.with(Capabilities::MYSQL)
        );
        assert_eq!(Offer::joined(&all[..1], Some("1.2.3")).version, b"1.2.3");
        assert!(Offer::joined(&[], None).capabilities.has(both));
    }
}
