//! How the questions over the network go, for operators.

use super::{LookupCounts, Names, hosts};
use crate::{
    config::{
        schema::{Config, Question},
        source::Lists,
    },
    members::{Address, Member},
};

impl Names {
    /// The DNS look-ups of each pool, of lists and of single servers: pool, name, and counts.
    pub(in crate::control) fn lookups(
        &self,
        config: &Config,
        servers: &Lists,
    ) -> Vec<(String, String, LookupCounts)> {
        let mut found = self.counts(config, |question| matches!(question, Question::Dns(_)));
        for (pool, names) in hosts(config, servers) {
            let known = names.into_iter().filter_map(|name| {
                let asked = self.host(&name)?;
                Some((pool.clone(), name, asked))
            });
            found.extend(known);
        }
        found
    }

    /// The questions of this kind for the lists of pools: pool, name, and counts.
    pub(in crate::control) fn counts(
        &self,
        config: &Config,
        is_meant: fn(&Question) -> bool,
    ) -> Vec<(String, String, LookupCounts)> {
        let counts = config.pools.iter().filter_map(|(pool, spec)| {
            let question = spec.source.question().filter(is_meant)?;
            let asked = self.status(&question)?;
            Some((pool.clone(), question.name().to_owned(), asked))
        });
        counts.collect()
    }

    /// Why the address of this member is unknown. `None`: it is known.
    pub(in crate::control) fn unresolved(&self, member: &Member) -> Option<String> {
        let host = match (&member.socket, Address::parse(&member.address)) {
            (None, Some(Address::Host(host, _))) => host,
            _ => return None,
        };
        Some(format!("its name does not resolve: {}", self.why_not(host)))
    }
}
