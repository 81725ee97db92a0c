//! The terms on which an origin's reply is kept.

use std::sync::Arc;

use super::fields::Fields;
use crate::{micros::Micros, near::RuleSettings};

/// The time for which an error is kept: a failing origin is asked once a second for each key.
const ERROR: Micros = Micros::secs(1);
/// The time for which a value that its origin can confirm is kept after its end, if there is room: a reply
/// without a body renews it.
const CONFIRMED: Micros = Micros::secs(3600);

/// An origin's terms for how long its reply may be kept. They only ever shorten the rule's times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The longest time for which the reply is fresh. `None` if the origin does not say it.
    pub limit: Option<Micros>,
    /// It may not be given after its time, whatever the rule says.
    pub is_strict: bool,
    /// The validator with which the origin is asked whether the value is still its own.
    pub validator: Option<Arc<Validator>>,
    /// It is no reply of the origin but its failure.
    pub is_error: bool,
}

/// A validator tells one version of a value from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    /// The entity tag, as the origin wrote it.
    pub etag: Box<[u8]>,
    /// The reply's fields about its freshness. A confirmation need not repeat them.
    pub fields: Fields,
}

impl Terms {
    /// Those of a failure.
    pub const FAILED: Self = Self {
        limit: None,
        is_strict: true,
        validator: None,
        is_error: true,
    };

    /// The span for which an entry with these terms is fresh, where the rule's is `fresh`.
    pub(in crate::near) fn fresh(&self, fresh: Micros) -> Micros {
        match (self.is_error, self.limit) {
            (true, _) => ERROR,
            (false, Some(limit)) => fresh.min(limit),
            (false, None) => fresh,
        }
    }

    /// The span after which an entry is useless.
    pub(in crate::near) fn useful(&self, fresh: Micros, settings: &RuleSettings) -> Micros {
        let stale = match self.is_strict {
            true => Micros::ZERO,
            false => settings.stale.max(settings.stale_on_error),
        };
        let confirmed = match self.validator {
            Some(_) => CONFIRMED,
            None => Micros::ZERO,
        };
        self.fresh(fresh) + stale.max(confirmed)
    }

    /// Bytes of memory.
    pub(in crate::near) fn memory(&self) -> usize {
        let validator = |of: &Arc<Validator>| size_of::<Validator>() + of.etag.len() + 32;
        size_of::<Self>() + self.validator.as_ref().map_or(0, validator)
    }
}
