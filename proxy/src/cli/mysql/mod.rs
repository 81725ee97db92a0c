//! `proxima mysql`: the pools of MySQL servers, as a running proxy sees them, and orders for them.

mod orders;
mod sessions;
mod show;
mod wait;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::{
    sessions::{PATH, Wanted, path, sessions},
    show::pools,
};
use super::{
    Answer,
    admin::{get, shown},
    args::{AdminPort, Mysql},
};
use crate::admin::{MysqlPool, MysqlSessions, MysqlStatus};

/// Does what this command says.
pub(super) fn mysql(command: Mysql) -> Answer {
    match command {
        Mysql::Show {
            at,
            pool,
            wait,
            within,
            json,
        } => {
            if let (Some(awaited), Some(pool)) = (wait, &pool)
                && let Err(error) = awaited.wait(within, || seen(at.clone(), pool))
            {
                return Answer::bad(1, format!("proxima: {error}"));
            }
            let path = pool.as_deref().map_or_else(|| "/mysql".to_owned(), page);
            shown(get(at, &path), json, |status: &MysqlStatus| pools(status))
        }
        Mysql::Sessions {
            at,
            user,
            state,
            pool,
            limit,
            sums,
            json,
        } => {
            let path = path([("user", user), ("state", state), ("pool", pool)]);
            let wanted = match (sums, path == PATH) {
                (true, _) => Wanted::Sums,
                (false, true) => Wanted::Both(limit),
                (false, false) => Wanted::Sessions(limit),
            };
            shown(get(at, &path), json, |all: &MysqlSessions| sessions(all, wanted))
        }
        Mysql::Writer {
            at,
            pool,
            member: Some(member),
            within,
            force,
            ..
        } => orders::writer(at, &pool, &member, within, force),
        Mysql::Writer { at, pool, .. } => orders::end_writer(at, &pool),
        Mysql::Drain {
            at,
            pool,
            member,
            within,
        } => orders::drain(at, &pool, &member, within),
        Mysql::Undrain { at, pool, member } => orders::undrain(at, &pool, &member),
    }
}

/// The page of this pool.
fn page(pool: &str) -> String {
    format!("/mysql?pool={}", utf8_percent_encode(pool, NON_ALPHANUMERIC))
}

/// This pool, as the proxy sees it now.
fn seen(at: AdminPort, pool: &str) -> Result<MysqlPool, String> {
    let text = get(at, &page(pool)).map_err(|error| error.to_string())?;
    let status: MysqlStatus = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    status
        .pools
        .into_iter()
        .next()
        .ok_or_else(|| format!("there is no pool {pool}"))
}
