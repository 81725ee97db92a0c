//! all_sync, all_majority, all_fastest, all_initial, all_async: these send to all children, and differ only
//! in the wait rule.

use crate::{
    config::routes::{self, Spec},
    route::{
        compile::{Build, CompileError, Maker},
        tree::{NodeId, Wait},
    },
};

/// The name of the gather that has this wait rule.
pub(in crate::route) fn name(wait: Wait) -> &'static str {
    match wait {
        Wait::All => routes::AllSync::NAME,
        Wait::Majority => routes::AllMajority::NAME,
        Wait::Fastest => routes::AllFastest::NAME,
        Wait::Initial => routes::AllInitial::NAME,
        Wait::Hit => "first_hit",
        Wait::None => routes::AllAsync::NAME,
    }
}

/// Builds these routes by their wait rules.
macro_rules! gathers {
    ($($spec:ident: $wait:ident),+) => {$(
        impl<'a> Build<'a, &'a routes::Children> for routes::$spec {
            fn build(
                &'a self,
                children: &'a routes::Children,
                maker: &mut Maker<'_, 'a>,
            ) -> Result<NodeId, CompileError> {
                maker.gather(Wait::$wait, children)
            }
        }
    )+};
}

gathers! {
    AllSync: All,
    AllMajority: Majority,
    AllFastest: Fastest,
    AllInitial: Initial,
    AllAsync: None
}
