//! A client of MySQL that has logged in, and its server, in a world without sockets.

use std::{path::Path, sync::Arc, thread, time::Duration};

use proxima::{
    config::{
        self,
        schema::{Access, KnownUser, KnownUsers, Secret, Users},
    },
    protocol::{Role, ServerAnswer},
};
use proxima_wire::{
    message::{Outcome, Reply},
    mysql::{
        Capabilities, EofPacket, Greeting, Header, OkPacket, SALT, Status, append_packet,
        password::{NATIVE, NativeKey},
    },
};

use super::world::{World, world_from};

/// The time at which worlds begin, since 1970, in µs.
const START: u64 = 1_700_000_000_000_000;
const PASSWORD: &[u8] = b"secret";
const SPOKEN: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::TRANSACTIONS.0,
);

/// A world with a client that has logged in, and whose server has answered a statement.
pub(crate) struct Statements {
    pub(crate) world: World,
    pub(crate) client: usize,
    /// The server that has answered.
    pub(crate) server: &'static str,
    /// A statement, as its client sends it and its server gets it.
    pub(crate) ask: Vec<u8>,
    /// The reply to it: a row.
    pub(crate) answer: Vec<u8>,
}

/// A packet with this number.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_packet(sequence, &mut out, |out| out.extend_from_slice(payload));
    out
}

/// An OK packet with this number.
fn ok(sequence: u8) -> Vec<u8> {
    let mut out = Vec::new();
    OkPacket {
        status: Status::AUTOCOMMIT,
        ..OkPacket::default()
    }
    .append(SPOKEN, sequence, &mut out);
    out
}

/// A result with one column and one row.
fn row() -> Vec<u8> {
    let column = b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x0b\0\0\0\x08\x81\0\0\0\0";
    let mut out = [packet(1, b"\x01"), packet(2, column)].concat();
    let eof = EofPacket {
        warnings: 0,
        status: Status::AUTOCOMMIT,
    };
    eof.append(3, &mut out);
    out.extend(packet(4, b"\x0243"));
    eof.append(5, &mut out);
    out
}

impl Statements {
    /// Logs a client in, and has it ask once.
    pub(crate) fn begin() -> Self {
        Self::of("servers: [{address: 10.0.0.1:1, name: a}]", "a")
    }

    /// The same before a Galera cluster, whose reader has all that the client's session must see.
    pub(crate) fn at_reader() -> Self {
        let servers = "servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}]";
        Self::of(&format!("{servers}, galera: {{consistency: session}}"), "b")
    }

    /// Logs a client in before these servers, and has it ask this one.
    fn of(servers: &str, server: &'static str) -> Self {
        let yaml = format!(
            "pools: {{p: {{protocol: mysql, {servers}, user: monitor, password_env: PATH, eject: {{failures: 0}}}}}}\n\
             listeners: [{{address: \"127.0.0.1:1\", protocol: mysql, route: p, users: u}}]\n"
        );
        let mut config = config::parse(&yaml, Path::new("test")).unwrap().config;
        let app = KnownUser {
            secret: Secret::new(PASSWORD),
            clients: Some(1),
            consistency: None,
        };
        config.listeners[0].access = Access::Users(Users {
            file: "u".into(),
            passwords: Vec::new(),
            known: Arc::new(KnownUsers([(b"app".to_vec(), app)].into())),
        });
        let mut world = world_from(&config);
        monitor(&world);
        let client = world.client();
        world.turn();
        let greeting = take(&mut world, client);
        let salt = Greeting::read(&greeting[Header::LEN..]).unwrap().salt;
        world.say(client, &packet(1, &hello(&salt)));
        let heard = take(&mut world, client);
        assert_eq!(heard[Header::LEN], 0, "{}", heard.escape_ascii());
        let mut made = Self {
            world,
            client,
            server,
            ask: packet(0, b"\x03SELECT n FROM t WHERE id = 12345678901234567"),
            answer: row(),
        };
        made.open();
        made
    }

    /// The first statement opens the connection to the server, which the proxy asks for more behind its
    /// login.
    fn open(&mut self) {
        let (client, ask) = (self.client, self.ask.clone());
        self.world.say(client, &ask);
        let lane = self.world.lane(self.server);
        let mut greeting = Vec::new();
        Greeting {
            version: b"5.5.5-10.11.6-MariaDB",
            connection: 7,
            salt: [9; SALT],
            capabilities: SPOKEN.with(Capabilities::SESSION_TRACK),
            collation: 45,
            status: Status::AUTOCOMMIT,
            method: NATIVE,
        }
        .append(&mut greeting);
        self.world.say(lane, &greeting);
        take(&mut self.world, lane);
        self.world.say(lane, &ok(2));
        for _ in 0..10 {
            let asked = take(&mut self.world, lane);
            if asked.ends_with(&self.ask) {
                let before = asked.len() > self.ask.len();
                let answer = [if before { ok(1) } else { Vec::new() }, self.answer.clone()].concat();
                self.world.say(lane, &answer);
                assert_eq!(take(&mut self.world, client), self.answer);
                return;
            }
            self.world.say(lane, &ok(1));
        }
        panic!("the server is not asked");
    }
}

/// Each server of a Galera cluster answers the questions of the monitor, until one of them takes writes.
#[expect(clippy::disallowed_methods, reason = "no client waits for a test")]
fn monitor(world: &World) {
    let members = world.engine.tree.members();
    let mut is_first = true;
    loop {
        let mut has_writer = false;
        for (position, member) in members.iter().enumerate() {
            let Some(state) = &member.pool.state else {
                return;
            };
            let of = member.answerer(position);
            for question in state.monitors() {
                let answer = match question.message.windows(7).any(|part| part == b"SHOW GL") {
                    true => table(&[
                        ("wsrep_ready", "ON"),
                        ("wsrep_cluster_status", "Primary"),
                        ("wsrep_local_state", "4"),
                        ("wsrep_node_name", &member.name),
                    ]),
                    false => ok(1),
                };
                let reply = Reply::new(Outcome::Ok, answer.len());
                state.asks(question.token, &of, START, is_first);
                state.answered(question.token, &of, ServerAnswer::Reply(&reply, &answer));
            }
            has_writer |= state.role(&of).is_some_and(|status| status.role == Role::Writer);
        }
        if has_writer {
            return;
        }
        // None is chosen before all have had some time to answer.
        thread::sleep(Duration::from_millis(50));
        is_first = false;
    }
}

/// A result with two columns, as a server sends it that sends no EOF behind their definitions.
fn table(pairs: &[(&str, &str)]) -> Vec<u8> {
    let column = b"\x03def\0\0\0\x01n\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    let mut out = [packet(1, b"\x02"), packet(2, column), packet(3, column)].concat();
    for (number, (name, value)) in pairs.iter().enumerate() {
        let texts = [name, value].map(|text| [&[text.len() as u8], text.as_bytes()].concat());
        out.extend(packet(4 + number as u8, &texts.concat()));
    }
    out.extend(packet(4 + pairs.len() as u8, b"\xfe\0\0\x02\0\0\0"));
    out
}

/// What the client says first.
fn hello(salt: &[u8; SALT]) -> Vec<u8> {
    let mut said = (SPOKEN.0 as u32).to_le_bytes().to_vec();
    said.extend((1_u32 << 30).to_le_bytes());
    said.push(45);
    said.extend([0; 23]);
    said.extend(b"app\0\x14");
    said.extend(NativeKey::of(PASSWORD).answer(salt));
    said.extend(NATIVE);
    said.push(0);
    said
}

/// What the engine has sent there.
fn take(world: &mut World, seat: usize) -> Vec<u8> {
    std::mem::take(&mut world.seats[seat].heard)
}
