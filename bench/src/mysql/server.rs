//! The server's side of one connection: as little of MariaDB, and of a node of a Galera cluster, as a proxy
//! notices.
//!
//! A read is answered with the value that belongs to its key, a write with `OK`; nothing is stored. What
//! proxies ask when they connect, and while they watch a server, is answered as by a node that is well.

use anyhow::{Context, Result, bail, ensure};
use proxima_wire::mysql::{
    Capabilities, Greeting, Hello, SALT, Status,
    password::{NATIVE, NativeKey},
};

use super::{
    account::{PASSWORD, USER},
    answer::Answer,
    node, packet,
    request::{
        CLOSE, EXECUTE, INIT_DB, PING, PREPARE, PREPARED, QUERY, QUIT, REPLACE, RESET_CONNECTION, SELECT,
    },
    result_set,
    transaction::{self, BEGIN, BEGUN, COMMIT, COMMITTED},
};

/// Bytes of a request of a run at most. A proxy that sends a longer one is wrong.
const LONGEST: usize = 0xff_ffff;

const VERSION: &[u8] = b"5.5.5-10.11.0-MariaDB";

/// The capabilities that a server offers: all of MariaDB's, except for compression, TLS, and MariaDB's own
/// extensions.
const OFFERED: Capabilities = Capabilities(0x01ff_f7fe).without(Capabilities::COMPRESS);

/// The same for all: it protects no secret.
const SALT_OF_ALL: [u8; SALT] = *b"proxima-bench-salt-0";

/// The state between two reads of one connection.
#[derive(Default)]
pub(crate) struct Conversation {
    /// A message that has not ended yet.
    begun: Vec<u8>,
    /// The capabilities that were agreed on; `None` before the login.
    agreed: Option<Capabilities>,
    /// Which of the statements of a run were prepared, by their number less one.
    prepared: Vec<usize>,
    in_transaction: bool,
}

impl Conversation {
    /// Appends what a server says first.
    pub(crate) fn greet(out: &mut Vec<u8>) {
        Greeting {
            version: VERSION,
            connection: 1,
            salt: SALT_OF_ALL,
            capabilities: OFFERED,
            collation: 45,
            status: Status::AUTOCOMMIT,
            method: NATIVE,
        }
        .append(out);
    }

    /// See [`Conversation::feed`](crate::protocol::Conversation::feed).
    pub(crate) fn feed(&mut self, bytes: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        let (mut at, mut served) = (0, 0);
        while let Some(packet) = packet::first(&begun[at..]) {
            at += packet.length;
            served += match self.agreed {
                None => self.log_in(packet.sequence, packet.payload, out)?,
                Some(agreed) => self.answer(agreed, packet.payload, value_size, out)?,
            };
        }
        begun.drain(..at);
        ensure!(begun.len() <= LONGEST, "a request of more than {LONGEST} bytes");
        self.begun = begun;
        Ok(served)
    }

    fn log_in(&mut self, sequence: u8, payload: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        let Hello::Login(login) = Hello::read(payload)? else {
            bail!("a client asks for TLS, which was not offered");
        };
        let hash = NativeKey::of(PASSWORD.as_bytes()).hash();
        let is_user = login.user == USER.as_bytes() && login.method == NATIVE;
        ensure!(
            is_user && hash.verify(&SALT_OF_ALL, login.answer).is_some(),
            "somebody logs in who is not {USER}"
        );
        let agreed = login.capabilities.both(OFFERED);
        ensure!(
            agreed.has(Capabilities::DEPRECATE_EOF),
            "the results of a run are for clients that take no EOF packets"
        );
        self.agreed = Some(agreed);
        Answer::new(agreed, sequence.wrapping_add(1), out).ok(&[], false);
        Ok(0)
    }

    /// Appends the reply to a command, and returns how many keys it reads or writes.
    fn answer(
        &mut self,
        agreed: Capabilities,
        payload: &[u8],
        value_size: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let (&command, text) = payload.split_first().context("a command without a byte")?;
        match command {
            QUERY if text == BEGIN => {
                self.in_transaction = true;
                out.extend_from_slice(BEGUN);
                return Ok(1);
            }
            QUERY if text == COMMIT => {
                self.in_transaction = false;
                out.extend_from_slice(COMMITTED);
                return Ok(1);
            }
            QUERY | EXECUTE => {
                let served = match command {
                    QUERY => query(agreed, text, value_size, out)?,
                    _ => self.execute(text, value_size, out)?,
                };
                if self.in_transaction {
                    transaction::set_open(out);
                }
                return Ok(served);
            }
            PREPARE => self.prepare(text, out)?,
            INIT_DB | PING => Answer::new(agreed, 1, out).ok(&[], false),
            RESET_CONNECTION => {
                self.prepared.clear();
                Answer::new(agreed, 1, out).ok(&[], false);
            }
            QUIT | CLOSE => {}
            _ => bail!(
                "a command that no client of a run sends: {}",
                payload.escape_ascii()
            ),
        }
        Ok(0)
    }

    /// Prepares one of the statements of a run. Its number is unique on the connection.
    fn prepare(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let place = PREPARED.iter().position(|known| *known == text);
        self.prepared
            .push(place.context("a statement that no client of a run prepares")?);
        let parameters = text.iter().filter(|&&byte| byte == b'?').count() as u8;
        let columns = u8::from(text.starts_with(b"SELECT"));
        packet::append(1, out, |out| {
            out.push(0);
            out.extend_from_slice(&(self.prepared.len() as u32).to_le_bytes());
            out.extend_from_slice(&[columns, 0, parameters, 0, 0, 0, 0]);
        });
        for number in 0..parameters {
            packet::append(2 + number, out, |out| {
                out.extend_from_slice(result_set::PARAMETER)
            });
        }
        if columns > 0 {
            packet::append(2 + parameters, out, |out| {
                out.extend_from_slice(result_set::COLUMN)
            });
        }
        Ok(())
    }

    fn execute(&mut self, text: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        let (number, rest) = text.split_first_chunk().context("an execution of nothing")?;
        let place = (u32::from_le_bytes(*number) as usize).checked_sub(1);
        match place.and_then(|place| self.prepared.get(place)) {
            Some(0) => {
                // Behind the flags, the count, the NULLs, the one type, and the length of the key.
                let key = rest
                    .get(5 + 1 + 1 + 2 + 1..)
                    .context("an execution without a key")?;
                result_set::append_hit(true, key, value_size, out);
            }
            Some(_) => out.extend_from_slice(result_set::STORED),
            None => bail!("an execution of what was not prepared"),
        }
        Ok(1)
    }
}

/// Appends the reply to a text, and returns how many keys it reads or writes.
fn query(agreed: Capabilities, text: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
    if let Some(rest) = text.strip_prefix(SELECT) {
        let key = rest.strip_suffix(b"'").context("a key that does not end")?;
        result_set::append_hit(false, key, value_size, out);
        return Ok(1);
    }
    if text.starts_with(REPLACE) {
        out.extend_from_slice(result_set::STORED);
        return Ok(1);
    }
    node::answer(agreed, text, out)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::{login::Login, reply::judge, request::*, statements::Statements};
    use super::*;
    use crate::verdict::Verdict;

    const NUMBERS: Statements = Statements { get: 1, set: 2 };

    type Append = fn(&mut Vec<u8>);

    /// A connection that is logged in and has prepared the statements of a run.
    fn logged_in(portion: usize) -> Conversation {
        let (mut server, mut login) = (Conversation::default(), Login::new(false, true));
        let (mut said, mut answers) = (Vec::new(), Vec::new());
        Conversation::greet(&mut said);
        while !login.is_over() {
            answers.clear();
            let used = login.take(&said, &mut answers).unwrap();
            said.drain(..used);
            for part in answers.chunks(portion) {
                assert_eq!(server.feed(part, 10, &mut said).unwrap(), 0);
            }
        }
        assert_eq!(login.statements(), NUMBERS);
        assert!(said.is_empty(), "{}", said.escape_ascii());
        server
    }

    #[test]
    fn requests_are_answered_as_they_are_judged_however_the_bytes_come() {
        for portion in [1, 2, 3, 7, 50, 1_000] {
            let mut server = logged_in(portion);
            let forms: [(Append, bool, bool); 4] = [
                (|out| append_get(b"key7", out), false, false),
                (|out| append_set(b"key7", 10, out), false, true),
                (|out| append_prepared_get(NUMBERS, b"key7", out), true, false),
                (|out| append_prepared_set(NUMBERS, b"key7", 10, out), true, true),
            ];
            for (append, binary, set) in forms {
                let (mut request, mut reply, mut served) = (Vec::new(), Vec::new(), 0);
                append(&mut request);
                for part in request.chunks(portion) {
                    served += server.feed(part, 10, &mut reply).unwrap();
                }
                let verdict = if set { Verdict::Stored } else { Verdict::Hit };
                assert_eq!(
                    judge(&reply, binary, b"key7", set, 10),
                    Some((reply.len(), verdict))
                );
                assert_eq!(served, 1);
            }
        }
    }

    #[test]
    fn what_no_client_of_a_run_sends_is_refused() {
        for (command, text) in [
            (QUERY, &b"SELECT 2"[..]),
            (QUERY, b"SELECT v FROM bench WHERE k='a"),
            (PREPARE, b"SELECT ?"),
            (EXECUTE, b"\x07\0\0\0\0"),
            (0x11, b"app"),
        ] {
            let mut request = Vec::new();
            append_command(command, text, &mut request);
            let answer = logged_in(1_000).feed(&request, 10, &mut Vec::new());
            assert!(answer.is_err(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn nobody_logs_in_with_another_password() {
        let mut words = Vec::new();
        proxima_wire::mysql::Login {
            capabilities: OFFERED,
            largest_packet: 1 << 24,
            collation: 45,
            user: USER.as_bytes(),
            answer: &NativeKey::of(b"guess").answer(&SALT_OF_ALL),
            database: b"",
            method: NATIVE,
            attributes: proxima_wire::mysql::Attributes::default(),
        }
        .append(1, &mut words);
        assert!(Conversation::default().feed(&words, 10, &mut Vec::new()).is_err());
    }
}
