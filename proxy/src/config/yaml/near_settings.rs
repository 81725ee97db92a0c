//! The file of settings of the near cache that were kept at run time.

use super::events;
use crate::config::{
    Diagnostic,
    document::Node,
    form::{ByName, Form, Named, Optional, Share, Size, Time},
    reading::Reading,
    schema::{NearKept, NearValues},
    section::section,
};

section! {
    /// What was kept.
    pub(super) struct NearSettingsKeys {
        /// The memory of the near cache.
        memory: Optional<Size>,
        /// Settings of rules.
        rules: ByName<NearValuesForm, RuleName> = Vec::new(),
    }
}

section! {
    /// Some settings of a rule.
    pub(super) struct NearValuesKeys {
        /// A reply is fresh for so long.
        ttl: Optional<Time>,
        /// The part of `ttl` by which the time of each reply may be shorter.
        jitter: Optional<Share>,
        /// After `ttl`, clients get the old reply for so long while one request renews it.
        stale: Optional<Time>,
        /// After `ttl`, clients get the old reply for so long in place of an error.
        stale_on_error: Optional<Time>,
        /// A miss is kept for so long.
        negative: Optional<Time>,
        /// The largest reply that is kept.
        largest: Optional<Size>,
    }
}

/// Names of rules.
#[derive(Debug)]
pub(super) struct RuleName;

impl Named for RuleName {
    const WHAT: &'static str = "rule";
}

/// Some settings of a rule, as they stand in the file.
#[derive(Debug)]
pub(super) struct NearValuesForm;

impl Form for NearValuesForm {
    type Value = NearValues;

    fn shape() -> crate::config::form::Shape {
        NearValuesKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<NearValues, Diagnostic> {
        let NearValuesKeys {
            ttl,
            jitter,
            stale,
            stale_on_error,
            negative,
            largest,
        } = NearValuesKeys::read(node, cx)?;
        Ok(NearValues {
            ttl,
            jitter,
            stale,
            stale_on_error,
            negative,
            largest,
        })
    }
}

/// Reads such a file.
pub(in crate::config) fn parse_near_settings(text: &str, cx: &mut Reading) -> Result<NearKept, Diagnostic> {
    let NearSettingsKeys { memory, rules } = NearSettingsKeys::read(&events::parse(text)?, cx)?;
    Ok(NearKept {
        memory,
        rules: rules
            .into_iter()
            .map(|(name, values)| (name.text, values))
            .collect(),
    })
}

/// Reads some settings of a rule.
pub(in crate::config) fn read_near_values(node: &Node, cx: &mut Reading) -> Result<NearValues, Diagnostic> {
    NearValuesForm::read(node, cx)
}
