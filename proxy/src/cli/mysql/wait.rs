//! Waiting until a server serves or takes writes, or until nothing is left there.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use super::show::why;
use crate::{
    admin::{MysqlMember, MysqlPool},
    cli::awaited::{Awaited, State},
    protocol::Role,
};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Why a wait has not ended as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WaitError {
    /// The proxy cannot be asked, or there is no such pool.
    #[error("{0}")]
    Unanswered(String),
    /// No member of the pool has this name or address.
    #[error("pool {0} has no member `{1}`")]
    NoMember(String, String),
    /// Several members have this name.
    #[error("`{0}` names several members: an address names one")]
    Ambiguous(String),
    /// Time is over, and this is missing.
    #[error("{0} {1}")]
    Late(String, String),
}

impl Awaited {
    /// Looks at the pool until it is so, for this time at most.
    ///
    /// # Errors
    /// There is no such member at the first look, or it is not so in time. A proxy that cannot be asked, or a
    /// member that is gone, is waited for if it was there at first.
    #[allow(clippy::disallowed_methods, reason = "a command has no turns")]
    pub(super) fn wait(
        &self,
        limit: Duration,
        look: impl Fn() -> Result<MysqlPool, String>,
    ) -> Result<MysqlPool, WaitError> {
        let until = Instant::now() + limit;
        let mut is_first = true;
        loop {
            let seen = look().map_err(WaitError::Unanswered);
            let seen = seen.and_then(|pool| Ok((self.missing(&pool)?, pool)));
            let missing = match seen {
                Ok((None, pool)) => return Ok(pool),
                Ok((Some(missing), _)) => missing,
                Err(error) if is_first => return Err(error),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= until {
                return Err(WaitError::Late(self.member.clone(), missing));
            }
            is_first = false;
            sleep(LOOK);
        }
    }

    /// What is missing yet; `None`: it is so.
    fn missing(&self, pool: &MysqlPool) -> Result<Option<String>, WaitError> {
        let member = member_named(&self.member, pool)?;
        let role = member.role.as_ref().map(|role| role.role.as_str());
        let is_writer = role == Some(Role::Writer.name());
        let why_not = |what: &str| {
            let why = why(member);
            let up = if member.is_up { "" } else { "it is down" };
            let why = if why.is_empty() { up.to_owned() } else { why };
            format!("{what}{}{why}", if why.is_empty() { "" } else { ": " })
        };
        Ok(match self.state {
            State::Online => {
                let serves = role != Some(Role::Out.name()) && member.is_up && !member.drains;
                (!serves).then(|| why_not("is not asked"))
            }
            State::Writer => (!is_writer).then(|| why_not("does not take writes")),
            State::Drained if !member.drains => {
                Some("does not drain: `proxima mysql drain` orders it".into())
            }
            State::Drained => {
                let left = member.in_use + member.queued + member.waiting;
                (left > 0).then(|| {
                    format!(
                        "still has {} connections of sessions, {} statements that wait for one, {} requests",
                        member.in_use, member.queued, member.waiting
                    )
                })
            }
        })
    }
}

/// The member of the pool with this name or address.
///
/// # Errors
/// No member has it, or several have.
pub(super) fn member_named<'a>(name: &str, pool: &'a MysqlPool) -> Result<&'a MysqlMember, WaitError> {
    let has_it = |member: &&MysqlMember| member.name == name || member.address == name;
    let mut found = pool.members.iter().filter(has_it);
    match (found.next(), found.next()) {
        (Some(member), None) => Ok(member),
        (None, _) => Err(WaitError::NoMember(pool.name.clone(), name.to_owned())),
        _ => Err(WaitError::Ambiguous(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::admin::RoleRow;

    fn member(name: &str, role: &str) -> MysqlMember {
        MysqlMember {
            name: name.to_owned(),
            address: "10.0.0.1:3306".to_owned(),
            role: Some(RoleRow {
                role: role.to_owned(),
                role_since: None,
                role_why: (role == "out").then(|| "it gives a copy to another server".to_owned()),
            }),
            position: None,
            unapplied: None,
            is_up: true,
            why: None,
            drains: false,
            connections: 3,
            in_use: 2,
            idle: 1,
            queued: 0,
            waiting: 1,
            sessions: Vec::new(),
        }
    }

    fn pool(members: Vec<MysqlMember>) -> MysqlPool {
        MysqlPool {
            name: "db".to_owned(),
            has_roles: true,
            writer: None,
            members,
        }
    }

    fn missing(awaited: &str, member: MysqlMember) -> Option<String> {
        let awaited: Awaited = awaited.parse().unwrap();
        awaited.missing(&pool(vec![member])).unwrap()
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(missing("online=a", member("a", "reader")), None);
        assert_eq!(missing("online=a", member("a", "writer")), None);
        assert_eq!(
            missing("online=a", member("a", "out")).as_deref(),
            Some("is not asked: it gives a copy to another server")
        );
        let down = MysqlMember {
            is_up: false,
            ..member("a", "reader")
        };
        assert_eq!(
            missing("online=a", down).as_deref(),
            Some("is not asked: it is down")
        );
        assert_eq!(
            missing("writer=a", member("a", "reader")).as_deref(),
            Some("does not take writes")
        );
        assert_eq!(missing("writer=10.0.0.1:3306", member("a", "writer")), None);
        assert!(
            missing("drained=a", member("a", "reader")).is_some(),
            "nobody has ordered it"
        );
        let drains = |in_use, waiting| MysqlMember {
            drains: true,
            in_use,
            waiting,
            ..member("a", "out")
        };
        assert!(
            missing("drained=a", drains(1, 0))
                .unwrap()
                .contains("1 connections")
        );
        assert!(missing("drained=a", drains(0, 1)).unwrap().contains("1 requests"));
        assert_eq!(missing("drained=a", drains(0, 0)), None);
    }

    #[test]
    fn a_name_that_nobody_or_several_have_is_rejected_at_once() {
        let wait = |members: Vec<MysqlMember>| {
            let awaited: Awaited = "online=a".parse().unwrap();
            let looks = Cell::new(0);
            let waited = awaited.wait(Duration::from_secs(3600), || {
                looks.set(looks.get() + 1);
                let names = members.iter().map(|one| member(&one.name, "out")).collect();
                Ok(pool(names))
            });
            assert_eq!(looks.get(), 1);
            waited.unwrap_err()
        };
        let none = WaitError::NoMember("db".into(), "a".into());
        assert_eq!(wait(vec![member("b", "reader")]), none);
        let twice = vec![member("a", "reader"), member("a", "reader")];
        assert_eq!(wait(twice), WaitError::Ambiguous("a".into()));
    }

    #[test]
    fn a_proxy_and_a_member_that_were_there_may_be_gone_for_a_while() {
        let looks = Cell::new(0);
        let awaited: Awaited = "writer=a".parse().unwrap();
        let seen = awaited.wait(Duration::from_secs(3600), || {
            looks.set(looks.get() + 1);
            match looks.get() {
                1 => Ok(pool(vec![member("a", "reader")])),
                2 => Err("nobody answers".to_owned()),
                3 => Ok(pool(vec![])),
                _ => Ok(pool(vec![member("a", "writer")])),
            }
        });
        assert_eq!((seen.is_ok(), looks.get()), (true, 4));
        let late = awaited.wait(Duration::ZERO, || Ok(pool(vec![member("a", "reader")])));
        let late = late.unwrap_err().to_string();
        assert_eq!(late, "a does not take writes");
    }
}
