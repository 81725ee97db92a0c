//! The asynchronous log of deletes that failed, which is around each PoolRoute, and may be around others.

use super::{Args, pool};
use crate::{
    config::{Diagnostic, reading::Reading, routes, schema::Route},
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{flag, text},
    },
};

pub(super) fn pool(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let own = args.take("asynclog", cx, flag)?;
    let own_name = args.take("asynclog_name", cx, text)?;
    let (built, pool) = pool::pool(builder, args, cx)?;
    let listed = builder.pools.listed.get(&pool);
    let (is_on, name) = listed.map(|listed| listed.asynclog.clone()).unwrap_or_default();
    Ok(match built {
        BuiltHandles::One(child) if builder.keeps_deletes && own.unwrap_or(is_on) => {
            BuiltHandles::One(Route::one(
                routes::Spool {
                    name: own_name.or(name).unwrap_or(pool),
                },
                child,
            ))
        }
        other => other,
    })
}

/// AsynclogRoute.
pub(super) fn around(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let child = args.target(builder, "target", cx)?;
    let name = args.take("asynclog_name", cx, text)?;
    args.finish(&[], &[], cx)?;
    let Some(name) = name else {
        let problem = format!(
            "AsynclogRoute: `asynclog_name` is missing, line: {}",
            args.at.line
        );
        return Err(cx.refuse(args.at, problem));
    };
    Ok(BuiltHandles::One(match builder.keeps_deletes {
        true => Route::one(routes::Spool { name }, child),
        false => child,
    }))
}
