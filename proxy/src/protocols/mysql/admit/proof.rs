//! Whether a client has proved who it is: to a list of users, or to the cache of logins that servers have accepted.

use proxima_wire::mysql::{
    Capabilities, SALT,
    password::{CACHING_SHA2, CLEAR, NATIVE},
};

use super::{
    super::{
        error::{ACCESS_DENIED, NO_METHOD},
        pending::Pending,
        state::Client,
        step::Claim,
        who::Proof,
    },
    Said, account, ask, attempt, denied, fresh,
    secret::Secret,
    welcome::admit,
    wrong,
};
use crate::protocol::{Access, Admission, Admitting, CachedLogin, Session};

/// Can a client prove by this method that it is this user?
pub(super) fn takes(access: &Access, user: &[u8], method: &[u8], is_private: bool) -> bool {
    match access {
        Access::Pass => match method {
            NATIVE | CACHING_SHA2 => true,
            CLEAR => is_private,
            _ => false,
        },
        Access::Open | Access::Accounts(_) => listed(access, user).0.takes(method, is_private),
    }
}

/// The client proves who it is.
pub(super) fn prove(
    session: &mut Session,
    with: &Admitting<'_>,
    claim: &Claim,
    said: Said<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    if let Access::Pass = session.access {
        return prove_to_servers(session, with, claim, said, out);
    }
    let (secret, is_user) = listed(&session.access, &claim.user);
    let proof = secret.verify(&claim.method, &client.salt, said.payload);
    match proof.filter(|_| is_user) {
        Some(proof) => {
            let pending = Pending::new(claim.clone(), proof, 0, said.sequence);
            admit(session, with, pending, said.used, out)
        }
        None => wrong(claim, said, out),
    }
}

/// The client proves who it is where the servers alone know that: by a cached login, or it says its password.
fn prove_to_servers(
    session: &mut Session,
    with: &Admitting<'_>,
    claim: &Claim,
    said: Said<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let account = account(with, claim);
    if with.logins.is_denied(with.host, &account, with.unix) {
        return attempt::too_many(claim, said, out);
    }
    let logins = with.logins.of(&account);
    let is_empty = matches!(said.payload, [] | [0]);
    if claim.method == CLEAR {
        let password = said.payload.strip_suffix(&[0]).unwrap_or(said.payload);
        return attempt::begin(session, with, claim, password, said, out);
    }
    if is_empty {
        return attempt::begin(session, with, claim, b"", said, out);
    }
    // One that was wrong in another method is not looked at.
    let found = match client.doubt {
        None => cached(&logins, claim, &client.salt, said.payload),
        Some(_) => None,
    };
    if let Some((proof, number)) = found {
        let pending = Pending::new(claim.clone(), proof, number, said.sequence);
        return admit(session, with, pending, said.used, out);
    }
    if !logins.is_empty() {
        let doubt = || with.logins.doubt(with.host, &account, with.unix);
        client.doubt.get_or_insert_with(doubt);
    }
    match &claim.method[..] {
        _ if !with.is_private && with.key.is_none() => {
            let text = format!(
                "Access denied for user '{}': the proxy asks for the password, which is said within TLS alone",
                String::from_utf8_lossy(&claim.user)
            );
            denied(ACCESS_DENIED, &text, said.sequence, out)
        }
        CACHING_SHA2 => attempt::ask_password(client, claim, said, out),
        _ if !client.capabilities.has(Capabilities::PLUGIN_AUTH) => {
            let text = "The client does not name its login method";
            denied(NO_METHOD, text, said.sequence, out)
        }
        _ => {
            let claim = Claim {
                method: CACHING_SHA2.to_vec(),
                ..claim.clone()
            };
            ask(client, claim, fresh(with), said.sequence, out);
            Admission::More { used: said.used }
        }
    }
}

/// What the list says of this user, and whether it is one. Somebody who is none is asked as one with a password.
fn listed<'a>(access: &'a Access, user: &[u8]) -> (Secret<'a>, bool) {
    let words = match access {
        Access::Accounts(accounts) => accounts.secret(user),
        Access::Open | Access::Pass => None,
    };
    (Secret::of(words.unwrap_or(b"nobody")), words.is_some())
}

/// The one of these logins, with its number, that a client has proved with this answer. Where there is none, as much
/// is done as for one.
fn cached(logins: &[CachedLogin], claim: &Claim, salt: &[u8; SALT], answer: &[u8]) -> Option<(Proof, u64)> {
    if logins.is_empty() {
        let _ = std::hint::black_box(Secret::Password(b"nobody").verify(&claim.method, salt, answer));
    }
    let secrets = logins.iter().filter(|login| !login.secret.is_empty());
    secrets
        .filter_map(|login| {
            let proof = Secret::Password(&login.secret).verify(&claim.method, salt, answer)?;
            Some((proof, login.number))
        })
        .next()
}
