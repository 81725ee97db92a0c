//! A client's login, message by message: who it is, and then what it prepares.

use anyhow::{Context, Result, bail, ensure};
use proxima_wire::mysql::{
    Attributes, AuthSwitch, Capabilities, ErrPacket, Greeting, Login as Hello, SALT, TlsRequest,
    password::{NATIVE, NativeKey},
};

use super::{
    account::{PASSWORD, SCHEMA, USER},
    packet,
    request::{PREPARE, PREPARED, append_command},
    statements::Statements,
};

/// The capabilities that drivers of today have in common.
pub(crate) const COMMON: Capabilities = Capabilities::MYSQL
    .with(Capabilities::LONG_FLAG)
    .with(Capabilities::CONNECT_WITH_DB)
    .with(Capabilities::PROTOCOL_41)
    .with(Capabilities::TRANSACTIONS)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::MULTI_RESULTS)
    .with(Capabilities::PLUGIN_AUTH);
/// The capabilities that a client asks for.
const WANTED: Capabilities = COMMON
    .with(Capabilities::PS_MULTI_RESULTS)
    .with(Capabilities::DEPRECATE_EOF);
/// The capabilities without which a client of a run cannot log in.
const NEEDED: Capabilities = Capabilities::MYSQL
    .with(Capabilities::CONNECT_WITH_DB)
    .with(Capabilities::PROTOCOL_41)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH);
/// The largest packet that a client takes, in bytes.
const LARGEST: u32 = 1 << 24;
/// `utf8mb4_general_ci`.
const COLLATION: u8 = 45;

/// A login that is under way.
pub(crate) struct Login {
    stage: Stage,
    tls: bool,
    prepares: bool,
    statements: Statements,
    /// The capabilities that are asked for; behind the greeting those that are agreed on.
    capabilities: Capabilities,
    /// Those of them that the server has to offer.
    needed: Capabilities,
}

/// The next message of the login.
#[derive(Clone, Copy)]
enum Stage {
    Greeting,
    /// TLS, and in it the login with the answer to this salt.
    Tls([u8; SALT]),
    Outcome,
    /// The head of the prepared statement at this place.
    Head(usize),
    /// Remaining definitions of the parameters and columns of the statement at this position.
    Definitions(usize, usize),
    Over,
}

impl Login {
    /// A login over TLS or plainly, behind which statements are prepared or not.
    pub(crate) const fn new(tls: bool, prepares: bool) -> Self {
        Self {
            stage: Stage::Greeting,
            tls,
            prepares,
            statements: Statements { get: 0, set: 0 },
            capabilities: WANTED,
            needed: WANTED,
        }
    }

    /// A plain login as of a driver that asks for these capabilities, behind which nothing is prepared.
    pub(crate) const fn of_driver(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            needed: capabilities,
            ..Self::new(false, false)
        }
    }

    /// A plain login at any server or proxy, which asks for no more than is offered. Nothing is prepared
    /// behind it.
    pub(crate) const fn anywhere() -> Self {
        Self {
            needed: NEEDED,
            ..Self::new(false, false)
        }
    }

    /// Whether EOF packets end the definitions and the rows of results, once the server has greeted.
    pub(crate) const fn has_eof(&self) -> bool {
        !self.capabilities.has(Capabilities::DEPRECATE_EOF)
    }

    /// Whether it is done.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// The statements that were prepared.
    pub(crate) const fn statements(&self) -> Statements {
        self.statements
    }

    /// Whether TLS comes next, which [`Login::go_on_within_tls`] is said after.
    pub(crate) fn wants_tls(&self) -> bool {
        matches!(self.stage, Stage::Tls(_))
    }

    /// Appends what is said first within TLS.
    pub(crate) fn go_on_within_tls(&mut self, out: &mut Vec<u8>) {
        if let Stage::Tls(salt) = self.stage {
            self.say_who(salt, 2, out);
        }
    }

    /// Takes whole messages at the start of `bytes`, and appends what is said to them. Returns their length.
    ///
    /// # Errors
    /// When the login is refused, or cannot be understood.
    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        let mut used = 0;
        while !self.is_over() && !self.wants_tls() {
            let Some(packet) = packet::first(&bytes[used..]) else {
                break;
            };
            used += packet.length;
            self.step(packet.sequence, packet.payload, out)?;
        }
        Ok(used)
    }

    fn step(&mut self, sequence: u8, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if payload.first() == Some(&0xff) {
            let error = ErrPacket::read(payload)?;
            bail!(
                "the login is refused: error {}: {}",
                error.code,
                error.message.escape_ascii()
            );
        }
        match self.stage {
            Stage::Greeting => self.greeted(payload, out)?,
            Stage::Outcome if payload.first() == Some(&0xfe) => {
                let switch = AuthSwitch::read(payload)?;
                let method = switch.method.escape_ascii();
                ensure!(
                    switch.method == NATIVE,
                    "the server asks for the login method {method}"
                );
                let salt = switch.data.get(..SALT).context("a salt that is too short")?;
                let answer = NativeKey::of(PASSWORD.as_bytes()).answer(salt.try_into()?);
                packet::append(sequence.wrapping_add(1), out, |out| {
                    out.extend_from_slice(&answer)
                });
            }
            Stage::Outcome => {
                ensure!(
                    payload.first() == Some(&0),
                    "no outcome of a login: {}",
                    payload.escape_ascii()
                );
                self.prepare(0, out);
            }
            Stage::Head(number) => {
                let [0, a, b, c, d, columns, _, parameters, _, ..] = *payload else {
                    bail!("no prepared statement: {}", payload.escape_ascii());
                };
                let known = u32::from_le_bytes([a, b, c, d]);
                match number {
                    0 => self.statements.get = known,
                    _ => self.statements.set = known,
                }
                self.stage = Stage::Definitions(number, usize::from(columns + parameters));
            }
            Stage::Definitions(number, 1) => self.prepare(number + 1, out),
            Stage::Definitions(number, left) => self.stage = Stage::Definitions(number, left - 1),
            Stage::Tls(_) | Stage::Over => {}
        }
        Ok(())
    }

    fn greeted(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let greeting = Greeting::read(payload)?;
        let offers = |wanted| greeting.capabilities.has(wanted);
        // Drivers ask for files whether or not they are offered.
        let optional = Capabilities::MYSQL.with(Capabilities::LOCAL_FILES);
        ensure!(offers(self.needed.without(optional)), "the server is too old");
        self.capabilities = self.needed.with(self.capabilities.both(greeting.capabilities));
        if !self.tls {
            self.say_who(greeting.salt, 1, out);
            return Ok(());
        }
        ensure!(offers(Capabilities::TLS), "the server has no TLS");
        TlsRequest {
            capabilities: self.capabilities,
            largest_packet: LARGEST,
            collation: COLLATION,
        }
        .append(out);
        self.stage = Stage::Tls(greeting.salt);
        Ok(())
    }

    fn say_who(&mut self, salt: [u8; SALT], sequence: u8, out: &mut Vec<u8>) {
        let tls = if self.tls {
            Capabilities::TLS
        } else {
            Capabilities::default()
        };
        Hello {
            capabilities: self.capabilities.with(tls),
            largest_packet: LARGEST,
            collation: COLLATION,
            user: USER.as_bytes(),
            answer: &NativeKey::of(PASSWORD.as_bytes()).answer(&salt),
            database: SCHEMA.as_bytes(),
            method: NATIVE,
            attributes: Attributes::default(),
        }
        .append(sequence, out);
        self.stage = Stage::Outcome;
    }

    /// Prepares the statement at this place, if there is one.
    fn prepare(&mut self, place: usize, out: &mut Vec<u8>) {
        let statement = PREPARED.get(place).filter(|_| self.prepares);
        self.stage = statement.map_or(Stage::Over, |_| Stage::Head(place));
        if let Some(text) = statement {
            append_command(PREPARE, text, out);
        }
    }
}
