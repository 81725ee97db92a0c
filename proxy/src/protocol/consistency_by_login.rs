//! The freshness of reads by what a client has said of itself, as the routes of its listener have it.

use std::collections::BTreeMap;

use super::Consistency;

/// How fresh a client's reads are by the routes. They look at nothing that a request says, so that it is known
/// before it walks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConsistencyByLogin {
    /// No route says it.
    #[default]
    Unsaid,
    /// A route says it.
    Said(Consistency),
    /// It depends on the user: those that are named, and all others.
    ByUser(BTreeMap<Box<[u8]>, Self>, Box<Self>),
    /// It depends on the schema that the client uses: those that are named, and all others.
    BySchema(BTreeMap<Box<[u8]>, Self>, Box<Self>),
}

impl ConsistencyByLogin {
    /// The word for a client of this user that uses this schema.
    pub fn of(&self, user: &[u8], schema: &[u8]) -> Option<Consistency> {
        let mut found = self;
        loop {
            let (names, default, name) = match found {
                Self::Unsaid => return None,
                Self::Said(word) => return Some(*word),
                Self::ByUser(names, default) => (names, default, user),
                Self::BySchema(names, default) => (names, default, schema),
            };
            found = names.get(name).unwrap_or(default);
        }
    }

    /// Does no route below say it?
    pub fn is_unsaid(&self) -> bool {
        match self {
            Self::Unsaid => true,
            Self::Said(_) => false,
            Self::ByUser(names, default) | Self::BySchema(names, default) => {
                default.is_unsaid() && names.values().all(Self::is_unsaid)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_is_known_leads_on() {
        let said = ConsistencyByLogin::Said;
        let by_schema = ConsistencyByLogin::BySchema(
            [((*b"reports").into(), said(Consistency::Eventual))].into(),
            Box::default(),
        );
        let by_user = ConsistencyByLogin::ByUser(
            [((*b"app").into(), by_schema)].into(),
            said(Consistency::Session).into(),
        );
        for (user, schema, word) in [
            (&b"app"[..], &b"reports"[..], Some(Consistency::Eventual)),
            (b"app", b"shop", None),
            (b"app", b"", None),
            (b"other", b"reports", Some(Consistency::Session)),
        ] {
            assert_eq!(by_user.of(user, schema), word);
        }
        assert!(!by_user.is_unsaid());
        let nothing =
            ConsistencyByLogin::BySchema([((*b"a").into(), Default::default())].into(), Box::default());
        assert!(nothing.is_unsaid());
    }
}
