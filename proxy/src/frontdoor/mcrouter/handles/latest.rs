//! LatestRoute, and `Latest` as a hash: a few of the children, chosen by the host.

use super::{Args, over, rules};
use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        routes,
        schema::{Children, FailoverRules, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, flag, list, number, text, whole},
    },
};

/// The parameters.
#[derive(Clone, Debug)]
pub(super) struct Latest {
    count: usize,
    salt: String,
    weights: Option<Vec<f64>>,
    per_worker: bool,
    rules: Box<FailoverRules>,
}

impl Default for Latest {
    fn default() -> Self {
        Self {
            count: 5,
            salt: String::new(),
            weights: None,
            per_worker: false,
            rules: Box::default(),
        }
    }
}

impl Latest {
    /// Reads the keys of an object.
    pub(super) fn read(object: &Object<'_>, cx: &mut Reading) -> Result<Self, Diagnostic> {
        let count = object.take("failover_count", cx, whole(1))?;
        let weights = object.take("weights", cx, list(number))?;
        let children = count.map_or(5, |count| count.unsigned_abs() as usize);
        Ok(Self {
            count: children,
            salt: object.take("salt", cx, text)?.unwrap_or_default(),
            weights: weights.map(|weights| weights.iter().map(|weight| weight.clamp(0.0, 1.0)).collect()),
            per_worker: object.take("thread_local_failover", cx, flag)?.unwrap_or(false),
            rules: Box::new(rules::read(object, vec![None; children], cx)?),
        })
    }

    /// The route over these children.
    pub(super) fn over(self, children: Children) -> Route {
        Route::of(
            routes::Latest {
                count: self.count,
                weights: self.weights,
                salt: self.salt,
                per_worker: self.per_worker,
                rules: self.rules,
            },
            children,
        )
    }
}

pub(super) fn latest(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let children = args.children(builder, cx)?;
    let latest = match &args.object {
        Some(object) => Latest::read(object, cx)?,
        None => Latest::default(),
    };
    args.finish(&[], &[], cx)?;
    Ok(over(children, |children| latest.over(children)))
}
