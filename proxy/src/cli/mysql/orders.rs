//! `proxima mysql writer`, `drain` and `undrain`: orders for a pool, and what has become of them.

use std::time::Duration;

use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    seen,
    sessions::{path, sessions_at},
    wait::member_named,
};
use crate::cli::{
    Answer,
    admin::{ANSWER, Admin, ask_within, get},
    args::AdminPort,
    awaited::Awaited,
};

/// Moves the writes of the pool to this member.
pub(super) fn writer(at: AdminPort, pool: &str, member: &str, within: Duration, is_forced: bool) -> Answer {
    let millis = within.as_millis();
    let order = Order {
        method: Method::POST,
        name: "writer",
        pool,
        member: Some(member),
        more: format!("&within={millis}ms{}", if is_forced { "&force=yes" } else { "" }),
        // The proxy itself gives up before.
        limit: within + 2 * ANSWER,
    };
    order.give(at, format!("{member} takes the writes of pool {pool}\n"))
}

/// Takes back who is the writer of the pool.
pub(super) fn end_writer(at: AdminPort, pool: &str) -> Answer {
    let done = format!("the writer of pool {pool} is not ordered any more\n");
    Order::simple(Method::DELETE, "writer", pool, None).give(at, done)
}

/// Gives this member nothing new, and waits until nothing is left there.
pub(super) fn drain(at: AdminPort, pool: &str, member: &str, limit: Duration) -> Answer {
    let order = Order::simple(Method::POST, "drain", pool, Some(member));
    let done = order.give(
        at.clone(),
        format!("nothing is left at {member}: it can be stopped\n"),
    );
    if done.code != 0 {
        return done;
    }
    match Awaited::drained(member).wait(limit, || seen(at.clone(), pool)) {
        Ok(_) => done,
        Err(error) => {
            let left = left_at(at, pool, member).unwrap_or_default();
            let stands = "it drains all the same, until `proxima mysql undrain`";
            Answer::bad(1, format!("proxima: {error}; {stands}\n{left}"))
        }
    }
}

/// The sessions that have a connection to this member.
fn left_at(at: AdminPort, pool: &str, member: &str) -> Option<String> {
    let path = path([("pool", Some(pool.to_owned()))]);
    let seen = seen(at.clone(), pool).ok()?;
    let found = member_named(member, &seen).ok()?;
    let all = serde_json::from_str(&get(at, &path).ok()?).ok()?;
    Some(sessions_at(&all, &found.address))
}

/// Lets this member serve again.
pub(super) fn undrain(at: AdminPort, pool: &str, member: &str) -> Answer {
    let order = Order::simple(Method::DELETE, "drain", pool, Some(member));
    order.give(at, format!("{member} does not drain\n"))
}

/// An order for a pool, or for a member of it.
struct Order<'a> {
    method: Method,
    name: &'static str,
    pool: &'a str,
    member: Option<&'a str>,
    /// Further pairs of its query.
    more: String,
    /// The longest time for the answer.
    limit: Duration,
}

impl<'a> Order<'a> {
    const fn simple(method: Method, name: &'static str, pool: &'a str, member: Option<&'a str>) -> Self {
        Self {
            method,
            name,
            pool,
            member,
            more: String::new(),
            limit: ANSWER,
        }
    }

    /// Gives it, and says this when it is in force.
    fn give(self, at: AdminPort, done: String) -> Answer {
        let escaped = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let member = self.member.map(|member| format!("&member={}", escaped(member)));
        let path = format!(
            "/orders/{}?pool={}{}{}",
            self.name,
            escaped(self.pool),
            member.unwrap_or_default(),
            self.more
        );
        match ask_within(&Admin::of(at), self.method, &path, self.limit) {
            Ok(_) => Answer::good(done),
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        }
    }
}
