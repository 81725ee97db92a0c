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
    Said, ask, attempt, denied, fresh,
    secret::Secret,
    welcome::admit,
    wrong,
};
use crate::protocol::{Access, Admission, Admitting, Session};

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
    let found = match &session.access {
        Access::Pass => cached(with, claim, &client.salt, said.payload),
        access => {
            let (secret, is_user) = listed(access, &claim.user);
            let proof = secret.verify(&claim.method, &client.salt, said.payload);
            proof.filter(|_| is_user).map(|proof| (proof, 0))
        }
    };
    if let Some((proof, number)) = found {
        let pending = Pending::new(claim.clone(), proof, number, said.sequence);
        return admit(session, with, pending, said.used, out);
    }
    match (&session.access, &claim.method[..]) {
        (Access::Pass, CLEAR) => {
            let password = said.payload.strip_suffix(&[0]).unwrap_or(said.payload);
            attempt::begin(session, with, claim, password, said, out)
        }
        (Access::Pass, _) if matches!(said.payload, [] | [0]) => {
            attempt::begin(session, with, claim, b"", said, out)
        }
        (Access::Pass, _) if !with.is_private && with.key.is_none() => {
            let text = format!(
                "Access denied for user '{}': the proxy asks for the password, which is said within TLS alone",
                String::from_utf8_lossy(&claim.user)
            );
            denied(ACCESS_DENIED, &text, said.sequence, out)
        }
        (Access::Pass, CACHING_SHA2) => attempt::ask_password(client, claim, said, out),
        (Access::Pass, _) if !client.capabilities.has(Capabilities::PLUGIN_AUTH) => {
            let text = "The client does not name its login method";
            denied(NO_METHOD, text, said.sequence, out)
        }
        (Access::Pass, _) => {
            let method = CACHING_SHA2.to_vec();
            let claim = Claim {
                method,
                ..claim.clone()
            };
            ask(client, claim, fresh(with), said.sequence, out);
            Admission::More { used: said.used }
        }
        _ => wrong(claim, said, out),
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

/// The cached login, with its number, that a client has proved with this answer.
fn cached(with: &Admitting<'_>, claim: &Claim, salt: &[u8; SALT], answer: &[u8]) -> Option<(Proof, u64)> {
    with.logins.of(&claim.user).into_iter().find_map(|login| {
        let secret = &login.secret[..];
        let proof = match (secret, answer) {
            (b"", [] | [0]) => Some(Proof::Password(Vec::new())),
            (b"", _) => None,
            _ => Secret::Password(secret).verify(&claim.method, salt, answer),
        };
        Some((proof?, login.number))
    })
}
