//! What a real server and real clients said, replayed at every split.

use std::path::Path;

use proxima_wire::mysql::{
    Capabilities, Command, Event, Greeting, Hello, ReplyReader, Shape, Status, Tracker, sql::Charset,
};

use crate::{
    capture::{self, Exchange},
    rows::each_row,
    session::read,
};

/// Captures of one connection, with its capabilities: of MariaDB 10.11 and of 11.8.
const FILES: [(&str, Capabilities); 6] = [
    ("plain.txt", BASE),
    ("track.txt", TRACK),
    ("deprecate_eof.txt", TRACK.with(Capabilities::DEPRECATE_EOF)),
    ("mariadb118-plain.txt", BASE),
    ("mariadb118-track.txt", TRACK),
    (
        "mariadb118-deprecate_eof.txt",
        TRACK.with(Capabilities::DEPRECATE_EOF),
    ),
];

/// The indexes of those that tell what a statement has changed.
const TRACKED: [usize; 4] = [1, 2, 4, 5];

/// The same statements, put to MySQL 9.7.
const MYSQL: [(&str, Capabilities); 3] = [
    ("mysql97-plain.txt", BASE),
    ("mysql97-track.txt", TRACK),
    (
        "mysql97-deprecate_eof.txt",
        TRACK.with(Capabilities::DEPRECATE_EOF),
    ),
];

const TRACK: Capabilities = BASE.with(Capabilities::SESSION_TRACK);

/// `PLAIN` of `captures/record_mysql.py`.
const BASE: Capabilities = Capabilities(0xfa20d);

fn exchanges(file: &str) -> Vec<Exchange> {
    capture::read(&format!("mysql/{file}"))
}

/// Is it no part of the login?
fn is_command(exchange: &Exchange) -> bool {
    exchange.request.get(3) == Some(&0)
}

/// The bytes in two pieces: every one of a short reply, and some of a long one.
fn splits(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    let step = bytes.len() / 2000 + 1;
    (1..bytes.len()).step_by(step).map(|at| {
        let (first, second) = bytes.split_at(at);
        [first, second]
    })
}

fn shape(exchange: &Exchange) -> Shape {
    // A server answers a command that it does not know with an error.
    Command::of(exchange.request[4]).map_or(Shape::Done, |command| command.shape)
}

#[test]
fn captured_replies_end_where_the_server_ends_them_at_every_split() {
    for (file, capabilities) in FILES.into_iter().chain(MYSQL) {
        each_row(exchanges(file).into_iter().filter(is_command), |exchange| {
            let (reply, shape) = (&exchange.reply[..], shape(exchange));
            if shape == Shape::Nothing {
                return assert!(reply.is_empty(), "{}", exchange.place);
            }
            let whole = read(shape, capabilities, [&[reply, b"more"].concat()[..]]);
            assert_eq!(
                (whole.end, whole.fault),
                (Some(reply.len()), None),
                "{}",
                exchange.place
            );
            for pieces in splits(reply) {
                assert_eq!(read(shape, capabilities, pieces), whole, "{}", exchange.place);
            }
            if reply.len() < 5000 {
                assert_eq!(
                    read(shape, capabilities, reply.chunks(1)),
                    whole,
                    "{}",
                    exchange.place
                );
            }
        });
    }
}

#[test]
fn captured_replies_of_more_than_one_packet_end_where_the_server_ends_them() {
    for exchange in exchanges("large.txt").iter().skip(2) {
        let reply = &exchange.reply;
        assert!(reply.len() > 1 << 24);
        for size in [65_536, 1 << 20, reply.len()] {
            let read = read(shape(exchange), BASE, reply.chunks(size));
            assert_eq!(
                (read.end, read.fault),
                (Some(reply.len()), None),
                "{}",
                exchange.place
            );
        }
    }
}

#[test]
fn captured_greetings_and_logins_are_written_as_they_came() {
    let files = [
        "plain.txt",
        "track.txt",
        "logins.txt",
        "clients.txt",
        "mariadb118-plain.txt",
        "mysql97-plain.txt",
    ];
    let mut logins = 0;
    for exchange in files.into_iter().flat_map(exchanges) {
        let mut out = Vec::new();
        if exchange.request.is_empty() {
            Greeting::read(&exchange.reply[4..]).unwrap().append(&mut out);
            assert_eq!(out, exchange.reply, "{}", exchange.place);
        } else if exchange.request[3] == 1 {
            let Ok(Hello::Login(login)) = Hello::read(&exchange.request[4..]) else {
                assert!(exchange.request[4..].starts_with(b"GET "), "{}", exchange.place);
                continue;
            };
            login.append(1, &mut out);
            assert_eq!(out, exchange.request, "{}", exchange.place);
            logins += 1;
        }
    }
    assert_eq!(logins, 9);
}

#[test]
fn captured_logins_end_with_ok_or_an_error_behind_any_number_of_questions() {
    let (mut reader, mut ends) = (None, Vec::new());
    for exchange in exchanges("logins.txt") {
        match (&mut reader, &exchange.request[..]) {
            // A greeting.
            (_, []) => continue,
            (Some(reader), _) => ReplyReader::answered(reader, 1),
            (none, request) => *none = Some(ReplyReader::new(Shape::Login, BASE, request[3] + 1)),
        }
        let login = reader.as_mut().expect("made above");
        let step = login.read(&exchange.reply).unwrap();
        assert_eq!(step.taken, exchange.reply.len(), "{}", exchange.place);
        let is_question = matches!(step.event, Event::AuthSwitch(_));
        assert_eq!(step.is_last, !is_question, "{}", exchange.place);
        if step.is_last {
            ends.push(matches!(step.event, Event::Ok(_)));
            reader = None;
        }
    }
    assert_eq!(ends, [true, true, true, false, false, false]);
}

/// The exchange with this statement.
fn exchange(file: &str, statement: &str) -> Exchange {
    let is_asked = |exchange: &Exchange| exchange.request.get(5..) == Some(statement.as_bytes());
    exchanges(file)
        .into_iter()
        .find(is_asked)
        .expect("a captured statement")
}

/// The events of the reply to this statement.
fn events(file: usize, statement: &str) -> Vec<String> {
    let (file, capabilities) = FILES[file];
    let exchange = exchange(file, statement);
    let read = read(shape(&exchange), capabilities, [&exchange.reply[..]]);
    read.events.into_iter().map(|(_, event)| event).collect()
}

#[test]
fn captured_trackers_say_what_statements_have_changed() {
    let variable = |name: &'static str, value: &'static str| {
        format!(
            "{:?}",
            Tracker::Variable {
                name: name.as_bytes(),
                value: value.as_bytes()
            }
        )
    };
    let state = format!("{:?}", Tracker::State(b"1"));
    for (statement, trackers) in [
        (
            "SET autocommit = 0",
            vec![variable("autocommit", "OFF"), state.clone()],
        ),
        (
            "USE test",
            vec![format!("{:?}", Tracker::Schema(b"test")), state.clone()],
        ),
        ("SET @x = 1", vec![state.clone()]),
        ("CREATE TEMPORARY TABLE x (id INT)", vec![state]),
        ("SELEC 1", vec![]),
    ] {
        for file in TRACKED {
            assert_eq!(
                tracked(FILES[file], statement),
                trackers,
                "{statement}, {}",
                FILES[file].0
            );
        }
        for file in [0, 3] {
            assert!(tracked(FILES[file], statement).is_empty(), "{statement}");
        }
    }
}

/// The trackers of the reply to this statement, in words.
fn tracked((file, capabilities): (&str, Capabilities), statement: &str) -> Vec<String> {
    let exchange = exchange(file, statement);
    let mut reader = ReplyReader::new(shape(&exchange), capabilities, 1);
    match reader.read(&exchange.reply).unwrap().event {
        Event::Ok(ok) => ok.trackers.map(|tracker| format!("{tracker:?}")).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_function_that_sets_a_variable_shows_in_the_status_behind_the_rows() {
    let changed = format!("{:?}", Status(Status::AUTOCOMMIT.0 | Status::SESSION_CHANGED.0));
    for file in TRACKED {
        let last = events(file, "SELECT sets()").pop().expect("an event");
        assert!(last.contains(&changed), "{last}");
    }
}

#[test]
fn the_text_of_a_captured_ok_packet_begins_behind_its_length() {
    for file in 0..FILES.len() {
        let [event] = &events(file, "UPDATE t SET a = 5 WHERE a = 4")[..] else {
            panic!("one event")
        };
        let info = format!("info: {:?}", b"Rows matched: 1  Changed: 1  Warnings: 0");
        assert!(event.contains(&info), "{event}");
    }
}

#[test]
fn a_cursor_ends_with_its_columns() {
    for (file, capabilities) in FILES {
        let all = exchanges(file);
        let is_cursor =
            |exchange: &&Exchange| exchange.request[4..].starts_with(&[0x17]) && exchange.request[9] == 1;
        let opened = all[2..].iter().find(is_cursor).expect("a captured cursor");
        let read = read(shape(opened), capabilities, [&opened.reply[..]]);
        assert_eq!(read.end, Some(opened.reply.len()));
        assert!(read.events.last().expect("an event").1.contains("Status(66)"));
    }
}

#[test]
fn the_number_of_a_captured_collation_means_the_same_as_the_name_of_its_character_set() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/mysql/collations.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<(u16, &str)> = rows
        .map(|line| line.split_once('\t').expect("two columns"))
        .map(|(number, name)| (number.parse().expect("a number"), name))
        .collect();
    assert!(rows.len() > 300);
    each_row(rows, |(number, name)| {
        assert_eq!(
            Charset::of_collation(*number),
            Charset::of(name.as_bytes()),
            "{number}, {name}"
        );
    });
}
