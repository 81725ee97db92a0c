//! Explanations of a statement: its effects, and the state that keeps its connection.

use proxima_wire::{
    message::{Class as Way, Request},
    mysql::{
        Capabilities, ErrPacket, Header,
        sql::{Class, Statement, without_values},
        statement_id,
    },
};

use super::{
    Mysql,
    admit::{door_of, terms},
    binding::Binding,
    commands,
    found::{consistency, found},
    hint::Hint,
    identity::{Identity, Proof},
    settings::{Settings, names_unreplayable},
    state::Client,
    words::{begins_with, has_word, shows},
};
use crate::protocol::{Access, ClientSide, Consistency, Plan, Role, Session, Texts};

/// The lowest byte of the number of utf8mb4_general_ci.
const UTF8MB4: u8 = 45;

impl Texts for Mysql {
    fn session(&self, access: &Access, user: &[u8], schema: &[u8]) -> Session {
        let mut session = Session {
            is_idle: true,
            ..Session::NEW
        };
        session.state.change(|client: &mut Client| {
            client.door = door_of(self.door, terms(access, user));
            client.collation = UTF8MB4;
            client.capabilities = Capabilities::PROTOCOL_41;
            client.settings = Settings::of_schema(schema);
            client.identity = Some(Identity {
                user: user.to_vec(),
                proof: Proof::Password(Vec::new()),
                capabilities: Capabilities::PROTOCOL_41,
                collation: UTF8MB4,
                number: 0,
                has_schema: !schema.is_empty(),
            });
        });
        session
    }

    fn append(&self, text: &[u8], out: &mut Vec<u8>) {
        commands::append_query(text, out);
    }

    fn shown(&self, session: &Session, _: &Request, message: &[u8]) -> Option<String> {
        let client = Client::of(session)?;
        let (first, rest) = message.get(Header::LEN..)?.split_first()?;
        let text = match commands::of(*first) {
            commands::UNKNOWN | commands::PREPARE => rest,
            commands::EXECUTE => {
                &client
                    .prepared
                    .get(statement_id(message.get(Header::LEN..)?)?)?
                    .text[..]
            }
            _ => return None,
        };
        without_values(text, client.mode())
    }

    fn remarks(&self, session: &mut Session, request: &Request, message: &[u8]) -> Vec<String> {
        let text = message.get(Header::LEN + 1..).unwrap_or_default();
        let statement = found(request);
        let class = commands::NAMES[usize::from(commands::of_class(statement.class))];
        let mut remarks = vec![format!("class {class}{}", beside(statement, request))];
        let mut reply = Vec::new();
        match self.plan(session, request, message, &mut reply) {
            Plan::Dedicated => {
                remarks.push(self.way(statement, request, text).into());
                remarks.push(keeps(session, statement, text));
            }
            Plan::Consult => remarks.push("answered here: it ends what another connection does".into()),
            _ => {
                let error = reply.get(Header::LEN..).map(ErrPacket::read);
                let code = error.and_then(Result::ok).map(|error| error.code);
                remarks.push(match code {
                    Some(code) => format!("answered here: error {code}"),
                    None => "answered here".into(),
                });
            }
        }
        remarks
    }
}

impl Mysql {
    /// The way of a statement that the proxy does not answer itself.
    fn way(&self, statement: Statement, request: &Request, text: &[u8]) -> &'static str {
        match request.class {
            Way::Read if self.door.rejects_writes => "it goes where reads go: the listener rejects writes",
            Way::Read => match consistency(request) {
                Consistency::Strict => "it goes where reads go, and waits there for all servers: `strict`",
                Consistency::Causal => "it goes to a reader with all writes of this process: `causal`",
                Consistency::Session => "it goes to a reader with what its session has seen: `session`",
                Consistency::Eventual => "it goes where reads go, and waits for nothing: `eventual`",
            },
            _ if statement.class != Class::Read => "it goes where writes go",
            _ if statement.is_several => "it goes where writes go: several statements",
            _ if self.door.reads_at_writer => "it goes where writes go: the listener reads there",
            _ if Hint::of(text).member == Some(Role::Writer) => "it goes where writes go: its hint says so",
            _ if shows(text) => "it goes where writes go: at a reader it would wait for no write",
            _ => "it goes where writes go",
        }
    }
}

/// The findings beside the class.
fn beside(statement: Statement, request: &Request) -> String {
    let found = [
        (request.body > 0, "the text is longer than 64 KiB and not read"),
        (statement.is_several, "several statements"),
        (
            statement.reads_session,
            "asks for what its server keeps for the session",
        ),
    ];
    let found = found.iter().filter(|(is, _)| *is);
    found.map(|(_, what)| format!(", {what}")).collect()
}

/// For how long the connection stays the session's behind a statement that was planned, and why, as far as
/// the text shows it.
fn keeps(session: &Session, statement: Statement, text: &[u8]) -> String {
    let Some(client) = Client::of(session) else {
        return String::new();
    };
    let planned = client.bindings.reason;
    let leaves = statement.changes_session.then_some(client.leaves);
    if planned.is_none() && leaves == Some(Binding::FoundRows) && !statement.is_several {
        return "keeps its connection for the next statement: the number of rows that it has counted".into();
    }
    if let Some(binding) = planned.or(leaves) {
        return format!("keeps its connection until the session ends: {binding}");
    }
    let is_session = statement.class == Class::Session;
    if is_session && names_unreplayable(text) {
        return "keeps its connection until the session ends: a variable that cannot be told another server"
            .into();
    }
    if is_session && has_word(text, b"autocommit") {
        return "keeps no connection; without autocommit the next statement begins a transaction".into();
    }
    if statement.class == Class::Transaction && begins_with(text, &["begin", "start", "xa"]) {
        return "keeps its connection until the transaction ends: a transaction begins".into();
    }
    match client.bindings.pends {
        true => "keeps its connection until the next transaction has ended: a setting for that".into(),
        false => "keeps no connection, unless a function or procedure changes the session".into(),
    }
}
