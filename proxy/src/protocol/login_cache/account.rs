//! An account.

/// A user of a realm.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Account {
    realm: Box<[u8]>,
    user: Box<[u8]>,
}

impl Account {
    /// This user of this realm.
    pub fn new(realm: &[u8], user: &[u8]) -> Self {
        Self {
            realm: realm.into(),
            user: user.into(),
        }
    }
}
