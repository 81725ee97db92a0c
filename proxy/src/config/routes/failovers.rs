//! Routes that ask another child after an error or a miss.

use proxima_wire::message::Outcome;

use super::{
    Over, Route, Spec,
    form::{ChildrenForm, RouteForm},
    policy::{FailoverPolicy, PolicyForm},
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::{Node, Value},
    form::{Amount, Count, Flag, Form, List, Optional, Shape, Share, Word},
    reading::{Length, Reading},
    section::section,
};

/// The next child after an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failover {
    /// When it goes on, and how.
    pub rules: Box<FailoverRules>,
}

/// When a failover goes on, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailoverRules {
    /// The errors after which it goes on.
    pub errors: FailoverErrors,
    /// The limit of failovers; `None`: no limit.
    pub limit: Option<FailoverLimit>,
    /// Keys with a `|#|` get `:failover=1` at their end on the way to all children but the first.
    pub tag: bool,
    /// The order of the children.
    pub policy: FailoverPolicy,
    /// A miss is filled where its token comes from; the name tells the route's leases from others'. `None`:
    /// it is filled as everything is stored.
    pub pairs_leases: Option<String>,
}

impl From<FailoverErrors> for Box<FailoverRules> {
    fn from(errors: FailoverErrors) -> Self {
        Self::new(FailoverRules {
            errors,
            ..FailoverRules::default()
        })
    }
}

/// The errors after which a failover goes on, by group. `None`: the defaults (`Outcome::is_failover`).
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct FailoverErrors {
    pub gets: Option<Vec<Outcome>>,
    pub updates: Option<Vec<Outcome>>,
    pub deletes: Option<Vec<Outcome>>,
    /// `incr`, `decr` and `touch`. mcrouter's configurations cannot name their errors.
    pub others: Option<Vec<Outcome>>,
}

/// mcrouter's `failover_limit`: each request earns `rate` tokens, each failover costs one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct FailoverLimit {
    pub rate: f64,
    pub burst: f64,
}

impl Spec for Failover {
    const NAME: &'static str = "failover";
}

impl Over for Failover {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const FAILOVER: Handle = handle! {
    /// The first child. While the reply is an error that another child may not have, the next one is asked.
    Failover::NAME, FailoverForm => |route| route
};

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    struct FailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// The errors after which the next child is asked.
        errors: ErrorsForm,
        /// Limit on the number of failovers.
        limit: Optional<LimitKeys>,
        /// Keys with a `|#|` get `:failover=1` at their end on the way to all children but the first.
        tag: Flag = false,
        /// The order in which the children behind the first one are asked. Without it that of the list.
        policy: PolicyForm = FailoverPolicy::InOrder,
    }
}

/// The failover handle. The lists of its policy are as long as its children.
#[derive(Debug)]
struct FailoverForm;

impl Form for FailoverForm {
    type Value = Route;

    fn shape() -> Shape {
        FailoverKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
        let keys = FailoverKeys::read(node, cx)?;
        let lists = match &keys.policy {
            FailoverPolicy::HashOrder(order) => {
                let domains = Some(order.domains.len()).filter(|&domains| domains > 0);
                vec![(order.weights.as_ref().map(Vec::len), 0), (domains, 0)]
            }
            FailoverPolicy::Rendezvous { tags } => vec![(Some(tags.len()), 1)],
            FailoverPolicy::InOrder | FailoverPolicy::LeastFailures { .. } => Vec::new(),
        };
        for (found, without) in lists {
            let site = cx.site(node.at);
            cx.index.lengths.extend(found.map(|found| Length {
                site,
                found,
                without,
                children: keys.children.siblings(),
            }));
        }
        let rules = Box::new(FailoverRules {
            errors: keys.errors,
            limit: keys.limit.map(|limit| FailoverLimit {
                rate: limit.rate,
                burst: limit.burst,
            }),
            tag: keys.tag,
            policy: keys.policy,
            pairs_leases: None,
        });
        Ok(Route::of(Failover { rules }, keys.children))
    }
}

section! {
    /// Limit on failovers: each request earns tokens, each failover costs one.
    struct LimitKeys {
        /// Tokens that a request earns.
        rate: Share,
        /// Tokens that can be saved up at most.
        burst: Amount = 1000.0,
    }
}

section! {
    /// The errors after which the next child is asked, by group. A group that is left out has the default
    /// ones.
    struct ErrorsKeys {
        /// For reads.
        gets: Optional<List<Word<Outcome>>>,
        /// For writes.
        updates: Optional<List<Word<Outcome>>>,
        /// For deletes.
        deletes: Optional<List<Word<Outcome>>>,
    }
}

/// Errors as a list for all groups, or by group.
#[derive(Debug)]
pub(super) struct ErrorsForm;

impl Form for ErrorsForm {
    type Value = FailoverErrors;

    fn shape() -> Shape {
        Shape::AnyOf(vec![List::<Word<Outcome>>::shape(), ErrorsKeys::shape()])
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<FailoverErrors, Diagnostic> {
        if let Value::List(_) = node.value {
            let all = Some(List::<Word<Outcome>>::read(node, cx)?);
            return Ok(FailoverErrors {
                gets: all.clone(),
                updates: all.clone(),
                deletes: all.clone(),
                others: all,
            });
        }
        let ErrorsKeys {
            gets,
            updates,
            deletes,
        } = ErrorsKeys::read(node, cx)?;
        Ok(FailoverErrors {
            gets,
            others: updates.clone(),
            updates,
            deletes,
        })
    }

    fn absent() -> Option<FailoverErrors> {
        Some(FailoverErrors::default())
    }
}

/// The next child after a miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissFailover {
    /// If no child has the key, the least bad reply is returned instead of the last one.
    pub best_on_error: bool,
}

impl Spec for MissFailover {
    const NAME: &'static str = "miss_failover";
}

impl Over for MissFailover {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const MISS_FAILOVER: Handle = handle! {
    /// Reads (`gat`, but not `touch`) and deletes ask the children in turn until one has the key. All other
    /// commands go to the first child.
    MissFailover::NAME, MissFailoverKeys => |keys: MissFailoverKeys| {
        let best_on_error = keys.best_on_error;
        Route::of(MissFailover { best_on_error }, keys.children)
    }
};

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    struct MissFailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// If no child has the key, the least bad reply is returned instead of the last one.
        best_on_error: Flag = false,
    }
}

/// The next child after an error, in which values do not live for long.
#[derive(Clone, Debug, PartialEq)]
pub struct FailoverWithTtl {
    /// The most seconds that they live.
    pub ttl: u32,
    /// When it goes on, and how.
    pub rules: Box<FailoverRules>,
}

impl Spec for FailoverWithTtl {
    const NAME: &'static str = "failover_with_ttl";
}

pub(super) const FAILOVER_WITH_TTL: Handle = handle! {
    /// `failover` whose later children store nothing for long: expiry times on their way there are limited as
    /// by `modify_ttl` with `min`, also those of `touch`, `gat` and the meta commands' flags.
    FailoverWithTtl::NAME, FailoverWithTtlKeys => |keys: FailoverWithTtlKeys| Route::FailoverWithTtl(
        FailoverWithTtl { ttl: keys.ttl, rules: keys.errors.into() },
        Box::new(keys.normal),
        keys.failover,
    )
};

section! {
    /// A route, and the routes that replace it on errors.
    struct FailoverWithTtlKeys {
        /// The route that is asked first.
        normal: RouteForm,
        /// The routes that replace it: a pool's name for all its servers, or a list of routes.
        failover: ChildrenForm,
        /// Seconds that values in them live at most after they are stored or touched.
        ttl: Count<1, { i32::MAX as u32 }> = 60,
        /// The errors after which the next child is asked.
        errors: ErrorsForm,
    }
}
