//! modify_ttl: changes the expiry of every request but deletes.

use proxima_wire::{
    memcache::{LONGEST_TTL, time},
    message::{Class, Request},
};

use super::Random;
use crate::{
    config::schema::TtlAction,
    route::tree::{Query, Wrap, Wrapped},
};

/// The route `modify_ttl`.
#[derive(Debug)]
pub(in crate::route) struct ModifyTtl {
    /// The new expiry, in seconds.
    pub(in crate::route) ttl: i64,
    /// The requests that get the new expiry: all, or those that live longer.
    pub(in crate::route) action: TtlAction,
}

impl Wrap for ModifyTtl {
    fn name(&self) -> &'static str {
        "modify_ttl"
    }

    fn request(
        &self,
        request: &Request,
        message: &[u8],
        _: &Query<'_>,
        unix: u64,
        _: &mut Random,
    ) -> Wrapped {
        if request.class == Class::Delete || (request.ttl.is_empty() && request.class != Class::Write) {
            return Wrapped::Pass;
        }
        let own = time(request.ttl.of(message)).map_or(0, i64::from);
        let left = if own > LONGEST_TTL {
            own.saturating_sub_unsigned(unix)
        } else {
            own
        };
        // An expiry of 0 means never, which is longer than every other expiry.
        let keeps = self.action == TtlAction::Min && own != 0 && (self.ttl == 0 || left <= self.ttl);
        if keeps {
            Wrapped::Pass
        } else {
            Wrapped::Ttl(self.ttl)
        }
    }

    fn why(&self) -> String {
        format!("expiry {:?} {} s", self.action, self.ttl).to_lowercase()
    }
}
