//! The proxy's login at a server: as itself or as a client, with TLS if its pool asks for it; then the server
//! is asked to tell what changes of a session.

use proxima_wire::{
    message::Parse,
    mysql::{
        AuthMore, AuthSwitch, Capabilities, ErrPacket, Event, Greeting, Header, Login as Hello, ReplyPart,
        SALT, Shape, Status, TlsRequest, Tracker, append_packet, find,
        password::{FAST, FULL, PUBLIC_KEY, hide},
        sql::Charset,
    },
};

use super::{
    commands::append_query,
    error::{OTHER, TOO_MANY_CONNECTIONS, TOO_MANY_OF_USER, TOO_MUCH_OF_USER, is_of_account},
    identity::{Identity, Proof},
    lane::Lane,
    offer::Offer,
    pairs::each_pair,
    reports::{TELL, TRACK},
    settings::STATEMENT_ID,
    stage::{Method, Stage},
};
use crate::protocol::{Login, MALFORMED, ServerLogin, StateSlot, encrypt};

/// The largest packet that the proxy takes: as large as any server allows.
const LARGEST: u32 = 1 << 30;

/// Only a server that may follow others knows this variable.
const GALERA: &[u8] = b"SELECT @@wsrep_on";
/// The numbers of connections and of prepared statements that the server takes from everybody.
const MOST: &[u8] = b"SELECT @@max_connections, @@max_prepared_stmt_count";

/// Takes one step.
pub(super) fn step(
    slot: &mut StateSlot,
    with: &mut ServerLogin<'_>,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Login {
    slot.change(|lane: &mut Lane| {
        lane.noted = with.noted.clone();
        (lane.count, lane.reached) = (with.count.clone(), with.reached.clone());
        lane.resets = with.resets;
        lane.schema_changes = with.schema_changes.clone();
        lane.statements.share(with.prepared);
    });
    let (Some(lane), Some(identity)) = (slot.get_mut::<Lane>(), identity(with)) else {
        return Login::Rejected("the pool names no `user` with a password".into());
    };
    match lane.stage {
        Stage::WithinTls(salt, collation, method) => {
            lane.stage = Stage::Proof(salt, true);
            say_hello(lane, &identity, (salt, collation, method), 2, out);
            Login::More { used: 0 }
        }
        Stage::Greeting | Stage::Proof(..) | Stage::Key(_) => match packet(bytes) {
            None => Login::More { used: 0 },
            Some((_, [])) => Login::Failed(MALFORMED.into()),
            Some((header, payload)) => {
                let used = Header::LEN + payload.len();
                let step = match lane.stage {
                    Stage::Proof(salt, is_secret) => {
                        proof(lane, &identity, with, (salt, is_secret), (header, payload), out)
                    }
                    Stage::Key(salt) => key(lane, &identity, with, salt, (header, payload), out),
                    _ => greeting(lane, &identity, with, (header, payload), out),
                };
                step.unwrap_or_else(|is_upgrade| match is_upgrade {
                    true => Login::Upgrade { used },
                    false => Login::More { used },
                })
            }
        },
        Stage::Track | Stage::Tell | Stage::Most | Stage::Galera => asked(lane, with, bytes),
        Stage::Over => Login::Ready { used: 0 },
    }
}

/// The identity with which the proxy logs in.
fn identity(with: &ServerLogin<'_>) -> Option<Identity> {
    if !with.words.is_empty() {
        return Identity::decode(with.words);
    }
    let own = with.own?;
    Some(Identity {
        user: own.user.clone(),
        proof: Proof::Password(own.password.as_deref().unwrap_or_default().to_vec()),
        capabilities: Capabilities::DEPRECATE_EOF
            .with(Capabilities::MULTI_STATEMENTS)
            .with(Capabilities::MULTI_RESULTS),
        collation: 45,
        number: 0,
        has_schema: true,
    })
}

/// The first packet, which is there as a whole.
fn packet(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let (header, rest) = bytes.split_first_chunk()?;
    let header = Header::of(*header);
    Some((header, rest.get(..header.len as usize)?))
}

/// The server has greeted. `Err`: the login goes on, behind TLS or as it is.
fn greeting(
    lane: &mut Lane,
    identity: &Identity,
    with: &mut ServerLogin<'_>,
    (header, payload): (Header, &[u8]),
    out: &mut Vec<u8>,
) -> Result<Login, bool> {
    if payload[0] == 0xff {
        return Ok(rejected(lane, identity, payload, with));
    }
    let Ok(greeting) = Greeting::read(payload) else {
        return Ok(Login::Failed(MALFORMED.into()));
    };
    let wanted = identity.wanted();
    if !greeting.capabilities.has(wanted.without(Capabilities::LONG_FLAG)) {
        return Ok(unsuitable(
            "the server lacks what its clients have agreed on",
            with,
        ));
    }
    lane.connection = greeting.connection;
    lane.capabilities = wanted.both(greeting.capabilities);
    lane.is_mariadb = !greeting.capabilities.has(Capabilities::MYSQL)
        || greeting.version.windows(7).any(|word| word == b"MariaDB");
    lane.offer = Some(Offer::of(&greeting));
    let (salt, method) = (greeting.salt, Method::of(greeting.method));
    let sequence = header.sequence.wrapping_add(1);
    if with.wants_tls {
        if !greeting.capabilities.has(Capabilities::TLS) {
            return Ok(Login::Failed(crate::protocol::NO_TLS.into()));
        }
        TlsRequest {
            capabilities: lane.capabilities,
            largest_packet: LARGEST,
            collation: identity.collation,
        }
        .append(out);
        lane.stage = Stage::WithinTls(salt, identity.collation, method);
        return Err(true);
    }
    lane.stage = Stage::Proof(salt, false);
    say_hello(lane, identity, (salt, identity.collation, method), sequence, out);
    Err(false)
}

/// Appends who the proxy is, with the proof that the server's method asks for.
fn say_hello(
    lane: &Lane,
    identity: &Identity,
    (salt, collation, method): ([u8; SALT], u8, Method),
    sequence: u8,
    out: &mut Vec<u8>,
) {
    // A password itself is sent only when it was asked for.
    let method = match method {
        Method::Sha2 if identity.proof.password().is_some() => Method::Sha2,
        _ => Method::Native,
    };
    let is_secret = matches!(lane.stage, Stage::Proof(_, true));
    let capabilities = match is_secret {
        true => lane.capabilities.with(Capabilities::TLS),
        false => lane.capabilities,
    };
    Hello {
        capabilities: capabilities.with(Capabilities::MYSQL),
        largest_packet: LARGEST,
        collation,
        user: &identity.user,
        answer: &answer(identity, method, &salt),
        database: b"",
        method: method.name(),
        attributes: proxima_wire::mysql::Attributes::default(),
    }
    .append(sequence, out);
}

/// The answer to a salt.
fn answer(identity: &Identity, method: Method, salt: &[u8; SALT]) -> Vec<u8> {
    match method {
        Method::Sha2 => identity
            .proof
            .sha2()
            .map_or_else(Vec::new, |key| key.answer(salt).to_vec()),
        _ => identity
            .proof
            .native()
            .map_or_else(Vec::new, |key| key.answer(salt).to_vec()),
    }
}

/// The server goes on with the proof. `Err`: the login goes on.
fn proof(
    lane: &mut Lane,
    identity: &Identity,
    with: &ServerLogin<'_>,
    (salt, is_secret): ([u8; SALT], bool),
    (header, payload): (Header, &[u8]),
    out: &mut Vec<u8>,
) -> Result<Login, bool> {
    let sequence = header.sequence.wrapping_add(1);
    match payload[0] {
        0 => {
            with.logins.accepted(identity.number, with.pool);
            lane.stage = Stage::Track;
            // A server answers in turn: a new connection waits once for all of these.
            for text in [TRACK, TELL, MOST, GALERA] {
                append_query(text, out);
            }
            Err(false)
        }
        0xff => Ok(rejected(lane, identity, payload, with)),
        0xfe => {
            let Ok(switch) = AuthSwitch::read(payload) else {
                return Ok(Login::Failed(MALFORMED.into()));
            };
            let method = Method::of(switch.method);
            let fresh = switch.data.get(..SALT).and_then(|salt| salt.try_into().ok());
            let salt: [u8; SALT] = fresh.unwrap_or(salt);
            lane.stage = Stage::Proof(salt, is_secret);
            let said = match method {
                Method::Native | Method::Sha2 => answer(identity, method, &salt),
                Method::Clear => match password_in_clear(identity, is_secret) {
                    Ok(password) => password,
                    Err(why) => return Ok(unsuitable(why, with)),
                },
                Method::Other => {
                    let name = String::from_utf8_lossy(switch.method);
                    return Ok(unsuitable(
                        &format!("the server asks for the login method {name}"),
                        with,
                    ));
                }
            };
            append_packet(sequence, out, |out| out.extend_from_slice(&said));
            Err(false)
        }
        1 => match AuthMore::read(payload).map(|more| more.data) {
            Ok(FAST) => Err(false),
            Ok(FULL) if !is_secret && with.may_encrypt && identity.proof.password().is_some() => {
                append_packet(sequence, out, |out| out.extend_from_slice(PUBLIC_KEY));
                lane.stage = Stage::Key(salt);
                Err(false)
            }
            Ok(FULL) => match password_in_clear(identity, is_secret) {
                Ok(password) => {
                    append_packet(sequence, out, |out| out.extend_from_slice(&password));
                    Err(false)
                }
                Err(why) => Ok(unsuitable(why, with)),
            },
            _ => Ok(Login::Failed(MALFORMED.into())),
        },
        _ => Ok(Login::Failed(MALFORMED.into())),
    }
}

/// The server has sent the key with which the password is encrypted. `Err`: the login goes on.
fn key(
    lane: &mut Lane,
    identity: &Identity,
    with: &ServerLogin<'_>,
    salt: [u8; SALT],
    (header, payload): (Header, &[u8]),
    out: &mut Vec<u8>,
) -> Result<Login, bool> {
    if payload[0] == 0xff {
        return Ok(rejected(lane, identity, payload, with));
    }
    let more = AuthMore::read(payload).ok();
    let password = identity.proof.password().unwrap_or_default();
    let Some(encrypted) = more.and_then(|more| encrypt(more.data, &hide(password, &salt))) else {
        return Ok(unsuitable("the server sends no key that can be used", with));
    };
    let sequence = header.sequence.wrapping_add(1);
    append_packet(sequence, out, |out| out.extend_from_slice(&encrypted));
    lane.stage = Stage::Proof(salt, false);
    Err(false)
}

/// The password with its end, as it is sent within TLS.
fn password_in_clear(identity: &Identity, is_secret: bool) -> Result<Vec<u8>, &'static str> {
    let password = identity
        .proof
        .password()
        .ok_or("the server asks for the password, of which only a hash is known")?;
    match is_secret {
        true => Ok([password, &[0]].concat()),
        false => Err(
            "the server asks for the password itself, which is sent within TLS alone: give the pool `tls`, or \
             `plain_logins: rsa`",
        ),
    }
}

/// The server has answered what it was asked behind the login.
fn asked(lane: &mut Lane, with: &mut ServerLogin<'_>, bytes: &[u8]) -> Login {
    let mut parse = Parse::default();
    let (len, event) = match find(&mut parse, Shape::Results, lane.capabilities, Some(1), bytes) {
        Ok(ReplyPart::More) => return Login::More { used: 0 },
        Ok(ReplyPart::Last { len, event, .. }) => (len as usize, event),
        Ok(ReplyPart::Part { .. }) | Err(_) => return Login::Failed(MALFORMED.into()),
    };
    match (lane.stage, event) {
        (Stage::Galera, event) => {
            lane.is_galera = !matches!(event, Event::Err(_)) && has_value(bytes, b"1");
            lane.stage = Stage::Over;
            lane.first_number = Some(1);
            return Login::Ready { used: len };
        }
        (Stage::Track, Event::Ok(_)) => lane.stage = Stage::Tell,
        (Stage::Tell, Event::Ok(ok)) => {
            for tracker in ok.trackers {
                if let Tracker::Variable { name, value } = tracker
                    && name != STATEMENT_ID
                {
                    let _ = lane.begun.set(name, value);
                }
            }
            tell_mode(lane, ok.status, with);
            lane.stage = Stage::Most;
        }
        (Stage::Most, _) => {
            each_pair(bytes, |connections, statements| {
                let number = |text: &[u8]| str::from_utf8(text).ok()?.parse().ok();
                with.connections = number(connections).unwrap_or(0);
                lane.statements.limit(number(statements));
            });
            lane.stage = Stage::Galera;
        }
        (_, Event::Err(error)) => {
            let text = String::from_utf8_lossy(error.message);
            return Login::Failed(format!(
                "the server does not tell what changes of a session: {text}"
            ));
        }
        _ => return Login::Failed(MALFORMED.into()),
    }
    Login::More { used: len }
}

/// The greeting of clients tells how the server reads texts.
fn tell_mode(lane: &mut Lane, status: Status, with: &mut ServerLogin<'_>) {
    let Some(offer) = lane.offer.take() else { return };
    let mode = lane.begun.mode(Charset::Utf8, status);
    Offer {
        ansi_quotes: mode.ansi_quotes,
        no_backslash_escapes: mode.no_backslash_escapes,
        ..offer
    }
    .encode(&mut with.said);
}

/// Has the result one row with this value?
fn has_value(reply: &[u8], value: &[u8]) -> bool {
    let mut rest = reply;
    while let Some((header, payload)) = packet(rest) {
        if payload.split_first() == Some((&(value.len() as u8), value)) {
            return true;
        }
        rest = &rest[Header::LEN + header.len as usize..];
    }
    false
}

/// The server does not take the login.
fn rejected(lane: &Lane, identity: &Identity, payload: &[u8], with: &ServerLogin<'_>) -> Login {
    let Ok(error) = ErrPacket::read(payload) else {
        return Login::Failed(MALFORMED.into());
    };
    // A reader may not have heard yet of a user, or of a password.
    if is_of_account(error.code) && !lane.is_of_reader(true) {
        with.logins.rejected(identity.number, with.pool);
    }
    let text = String::from_utf8_lossy(error.message).into_owned();
    // A server says to one client what it says of that one, or of how many there are: it is well.
    match with.words.is_empty() {
        true => match error.code {
            1044 | 1045 | 1049 | 1251 | 1698 | 1820 | 1862 | 4151 => {
                Login::Rejected(format!("login refused: {text}"))
            }
            _ => Login::Failed(text),
        },
        false => {
            let mut reply = Vec::new();
            let state = error.state.or(Some(*b"08004"));
            ErrPacket { state, ..error }.append(1, &mut reply);
            match error.code {
                TOO_MANY_CONNECTIONS => Login::Full {
                    reply,
                    is_of_login: false,
                },
                TOO_MANY_OF_USER | TOO_MUCH_OF_USER => Login::Full {
                    reply,
                    is_of_login: true,
                },
                _ => Login::Denied(reply),
            }
        }
    }
}

/// The login cannot go on, for a reason that lies with the client that it is for.
fn unsuitable(why: &str, with: &ServerLogin<'_>) -> Login {
    if with.words.is_empty() {
        return Login::Rejected(why.into());
    }
    let mut reply = Vec::new();
    OTHER.append(1, why, &mut reply);
    Login::Denied(reply)
}
