//! modify_ttl: changes the expiry of every request but deletes.

use proxima_wire::message::Request;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::{Route, TtlAction},
    },
    protocol::Expiry,
    route::{
        compile::{Build, CompileError, Maker},
        tree::{NodeId, Query, Wrap, Wrapped},
    },
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
        routes::ModifyTtl::NAME
    }

    fn request(&self, request: &Request, message: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        if query.protocol.is_composite(request) {
            return Wrapped::Each;
        }
        let keeps = match query.protocol.expiry(request, message, query.unix.as_secs()) {
            Expiry::None => true,
            // Never is longer than every other expiry.
            Expiry::Never => false,
            Expiry::In(left) => self.action == TtlAction::Min && (self.ttl == 0 || left <= self.ttl),
        };
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

impl<'a> Build<'a, &'a Route> for routes::ModifyTtl {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        let &Self { ttl, action } = self;
        Ok(maker.wrap(ModifyTtl { ttl, action }, child))
    }
}
