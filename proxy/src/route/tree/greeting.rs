//! What the clients of a listener are greeted with.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use crate::{
    members::{MemberId, SelfDescription},
    protocol::Protocol,
};

/// What the codec has made of what members have told, for one listener and one worker. It is made anew when a
/// member has told something new.
pub(in crate::route) struct Greeting {
    /// The version of servers that the configuration names.
    configured: Option<Box<str>>,
    /// The news that it is made from, and the member that came first. `None`: it was not made yet.
    of: Cell<Option<(u64, Option<MemberId>)>>,
    made: RefCell<Arc<[u8]>>,
}

impl Greeting {
    /// One that nothing was made for yet.
    pub(in crate::route) fn new(configured: Option<&str>) -> Self {
        Self {
            configured: configured.map(Into::into),
            of: Cell::new(None),
            made: RefCell::default(),
        }
    }

    /// The greeting, as `said` has it now.
    pub(super) fn get(
        &self,
        protocol: &dyn Protocol,
        first: Option<MemberId>,
        said: impl FnOnce() -> Vec<Arc<[u8]>>,
    ) -> Arc<[u8]> {
        let of = Some((SelfDescription::revision(), first));
        if self.of.replace(of) != of {
            let mut made = Vec::new();
            protocol.greeting(&said(), self.configured.as_deref(), &mut made);
            self.made.replace(made.into());
        }
        Arc::clone(&self.made.borrow())
    }
}
