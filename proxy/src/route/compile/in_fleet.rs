//! Pools and servers that are copies of a fleet, under whichever name a configuration has them.
//!
//! A copy is asked through its keeper alone: whoever talks to the server itself would read what the keeper
//! knows to be stale, and change what other peers never hear of. A pool of the same servers, as the list
//! of "the local server" in many configurations, is the fleet's pool.

use super::{CompileError, maker::Maker};
use crate::{config::schema::Replicated, members::Address};

impl<'a> Maker<'_, 'a> {
    /// The pool of the fleet that this pool is, or whose servers it has. `None`: it has nothing to do with a
    /// fleet.
    ///
    /// # Errors
    /// Only some of its servers are copies of a fleet.
    pub(super) fn fleet_pool(&self, name: &str) -> Result<Option<(&'a str, &'a Replicated)>, CompileError> {
        let config = self.compiler.config;
        if config.fleet.is_none() {
            return Ok(None);
        }
        let Some((name, pool)) = config.pools.get_key_value(name) else {
            return Ok(None);
        };
        if let Some(replicated) = &pool.replicated {
            return Ok(Some((name, replicated)));
        }
        let servers = self
            .compiler
            .pools
            .get(name.as_str())
            .map_or(&[][..], Vec::as_slice);
        let mut found = servers
            .iter()
            .map(|member| (member, self.copy_at(&member.address)));
        let Some((_, first)) = found.next() else {
            return Ok(None);
        };
        match found.find(|(_, of)| of.map(|(pool, _)| pool) != first.map(|(pool, _)| pool)) {
            None => Ok(first),
            Some((other, _)) => Err(CompileError::HalfInFleet {
                pool: name.clone(),
                servers: [servers[0].address.clone(), other.address.clone()],
            }),
        }
    }

    /// The pool of the fleet of which the server at this address is a copy. A loopback address is this
    /// machine's.
    pub(super) fn copy_at(&self, address: &str) -> Option<(&'a str, &'a Replicated)> {
        let config = self.compiler.config;
        config.fleet.as_ref()?;
        let loopback = match Address::parse(address)? {
            Address::Ip(at) if at.ip().is_loopback() => Some(at.port()),
            Address::Host("localhost", port) => Some(port),
            _ => None,
        };
        let is_own = |own: &str| match Address::parse(own) {
            Some(Address::Ip(at)) => Some(at.port()) == loopback && !at.ip().is_loopback(),
            Some(Address::Host(_, port)) => Some(port) == loopback,
            _ => false,
        };
        config.pools.iter().find_map(|(name, pool)| {
            let replicated = pool.replicated.as_ref()?;
            let own = pool.source.own().unwrap_or_default();
            let mut copies = own.iter().chain(pool.source.listed_copies());
            let is_copy =
                copies.any(|copy| copy.address == address) || own.iter().any(|own| is_own(&own.address));
            is_copy.then_some((name.as_str(), replicated))
        })
    }
}
