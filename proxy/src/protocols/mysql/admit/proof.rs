//! The check of a client's proof of identity: to a list of users, or to the cache of logins that servers have
//! accepted.

use proxima_wire::mysql::{
    AuthMore, Capabilities, SALT,
    password::{CACHING_SHA2, CLEAR, FULL, NATIVE},
};

use super::{
    super::{
        error::ACCESS_DENIED,
        identity::Proof,
        pending::Pending,
        state::Client,
        step::{Claim, Step},
    },
    Answer, account, ask, attempt, denied, fresh, no_method,
    secret::Secret,
    welcome::admit,
    wrong,
};
use crate::protocol::{Access, Admission, AdmissionContext, CachedLogin, Session};

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
    with: &AdmissionContext<'_>,
    answer: Answer<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let found = match &session.access {
        Access::Pass => match prove_to_servers(client, with, answer, out) {
            ProofResult::ByLogin(proof, number) => Some((proof, number)),
            ProofResult::Not(step) => return step,
            ProofResult::ByPassword(password) => {
                return attempt::begin(session, with, answer, &password, out);
            }
        },
        access => {
            let (secret, is_user) = listed(access, &answer.claim.user);
            let proof = secret.verify(&answer.claim.method, &client.salt, answer.payload);
            proof.filter(|_| is_user).map(|proof| (proof, 0))
        }
    };
    match found {
        Some((proof, number)) => {
            let pending = Pending::new(answer.claim.clone(), proof, number, answer.sequence);
            admit(session, with, pending, answer.used, out)
        }
        None => wrong(answer, out),
    }
}

/// The result of a client's proof where only the servers know its password.
enum ProofResult {
    /// The password of a cached login, with the login's number.
    ByLogin(Proof, u64),
    /// Nothing: it has said this password.
    ByPassword(Vec<u8>),
    /// Nothing: it is denied, or asked for more.
    Not(Admission),
}

fn prove_to_servers(
    client: &mut Client,
    with: &AdmissionContext<'_>,
    answer: Answer<'_>,
    out: &mut Vec<u8>,
) -> ProofResult {
    let Answer { claim, payload, .. } = answer;
    let account = account(with, claim);
    if with.logins.is_denied(with.host, &account, with.unix) {
        return ProofResult::Not(attempt::too_many(answer, out));
    }
    if claim.method == CLEAR {
        return ProofResult::ByPassword(payload.strip_suffix(&[0]).unwrap_or(payload).to_vec());
    }
    if matches!(payload, [] | [0]) {
        return ProofResult::ByPassword(Vec::new());
    }
    let logins = with.logins.of(&account);
    // One that was wrong in another method is not looked at.
    let found = match client.doubt {
        None => cached(&logins, claim, &client.salt, payload),
        Some(_) => None,
    };
    if let Some((proof, number)) = found {
        return ProofResult::ByLogin(proof, number);
    }
    if !logins.is_empty() {
        let doubt = || with.logins.doubt(with.host, &account, with.unix);
        client.doubt.get_or_insert_with(doubt);
    }
    ProofResult::Not(ask_for_more(client, with, answer, out))
}

/// Asks a client that has proved nothing for its password, or for the method by which it is asked for that.
fn ask_for_more(
    client: &mut Client,
    with: &AdmissionContext<'_>,
    answer: Answer<'_>,
    out: &mut Vec<u8>,
) -> Admission {
    let claim = answer.claim;
    if !with.is_private && with.key.is_none() {
        let text = format!(
            "Access denied for user '{}': the proxy asks for the password, which is said within TLS alone",
            String::from_utf8_lossy(&claim.user)
        );
        return denied(ACCESS_DENIED, &text, answer.sequence, out);
    }
    if claim.method == CACHING_SHA2 {
        AuthMore { data: FULL }.append(answer.sequence, out);
        client.step = Step::Password(claim.clone());
        return Admission::More { used: answer.used };
    }
    if !client.capabilities.has(Capabilities::PLUGIN_AUTH) {
        return no_method(answer.sequence, out);
    }
    let claim = Claim {
        method: CACHING_SHA2.to_vec(),
        ..claim.clone()
    };
    ask(client, claim, fresh(with), answer.sequence, out);
    Admission::More { used: answer.used }
}

/// The list's secret of this user, and whether it is a user. Somebody who is no user is asked as one with a
/// password.
fn listed<'a>(access: &'a Access, user: &[u8]) -> (Secret<'a>, bool) {
    let words = match access {
        Access::Accounts(accounts) => accounts.secret(user),
        Access::Open | Access::Pass => None,
    };
    (Secret::of(words.unwrap_or(b"nobody")), words.is_some())
}

/// The one of these logins, with its number, that a client has proved with this answer. Without a login as
/// much is done as for one, so that the time tells nothing.
fn cached(logins: &[CachedLogin], claim: &Claim, salt: &[u8; SALT], answer: &[u8]) -> Option<(Proof, u64)> {
    if logins.is_empty() {
        let _ = std::hint::black_box(Secret::Password(b"nobody").verify(&claim.method, salt, answer));
    }
    let mut logins = logins.iter().filter(|login| !login.secret.is_empty());
    logins.find_map(|login| {
        let proof = Secret::Password(&login.secret).verify(&claim.method, salt, answer)?;
        Some((proof, login.number))
    })
}
