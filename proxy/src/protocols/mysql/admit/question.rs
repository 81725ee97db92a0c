//! Questions to a server about a login.

use proxima_wire::mysql::append_packet;

use super::super::{
    identity::Identity,
    pending::{Pending, Question},
    state::Client,
    step::Step,
};
use crate::protocol::{Admission, Session};

/// COM_INIT_DB.
const INIT_DB: u8 = 2;
/// COM_PING.
const PING: u8 = 14;

/// The login at a server of this client.
pub(super) fn identity(client: &Client, pending: &Pending) -> Identity {
    Identity {
        user: pending.claim.user.clone(),
        proof: pending.proof.clone(),
        capabilities: client.capabilities,
        collation: client.collation,
        number: pending.number,
        has_schema: !pending.claim.schema.is_empty(),
    }
}

/// Asks a server, with the login of this client, whether the login and the schema are good. The connection
/// has the number of the attempt: none is used that was opened before.
pub(super) fn ask_server(
    session: &mut Session,
    mut pending: Pending,
    question: Question,
    used: usize,
) -> Admission {
    let Some(client) = session.state.get_mut::<Client>() else {
        return Admission::Denied;
    };
    let mut request = Vec::new();
    append_packet(0, &mut request, |out| match &pending.claim.schema[..] {
        [] => out.push(PING),
        schema => {
            out.push(INIT_DB);
            out.extend_from_slice(schema);
        }
    });
    let (Question::Login(attempt) | Question::Schema(attempt)) = &question;
    session.login = Identity {
        number: attempt.number(),
        ..identity(client, &pending)
    }
    .encode();
    client.step = Step::Asked;
    if let Some(doubt) = client.doubt.take() {
        doubt.clear();
    }
    pending.question = Some(question);
    client.pending = Some(Box::new(pending));
    Admission::Ask { used, request }
}
