//! Where replies end, and what they say.

use proxima_wire::{
    message::Parse,
    mysql::{
        Capabilities, EofPacket, ErrPacket, Event, Fault, LONGEST_CONTROL, OkPacket, ReplyPart, ReplyReader,
        Shape, Status, Tracker, Trackers, find,
    },
};

use crate::{
    rows::each_row,
    session::{ALL, PLAIN, Read, Server, read},
};

const NONE: Status = Status(0);

fn names(read: &Read) -> Vec<&str> {
    let name = |event: &str| event.find(['(', ' ', '{']).unwrap_or(event.len());
    read.events
        .iter()
        .map(|(_, event)| &event[..name(event)])
        .collect()
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    shape: Shape,
    server: fn(Server) -> Server,
    /// Without and with DEPRECATE_EOF.
    events: [&'static [&'static str]; 2],
}

const ROWS: &[Row] = &[
    Row {
        name: "OK",
        shape: Shape::Results,
        server: |server| server.ok(NONE),
        events: [&["Ok"], &["Ok"]],
    },
    Row {
        name: "error",
        shape: Shape::Results,
        server: |server| server.error(),
        events: [&["Err"], &["Err"]],
    },
    Row {
        name: "rows, of which some begin as an end does",
        shape: Shape::Results,
        server: |server| server.rows(&[b"\x01a\x01b", b"\xfb\xfb", b"\0\0", &[0xfc; 300]], NONE),
        events: [&["Columns", "Eof", "Eof"], &["Columns", "Ok"]],
    },
    Row {
        name: "an error between rows",
        shape: Shape::Results,
        server: |server| server.raw(&[1]).definitions(1, NONE).raw(b"\x01a").error(),
        events: [&["Columns", "Eof", "Err"], &["Columns", "Err"]],
    },
    Row {
        name: "three results",
        shape: Shape::Results,
        server: |server| {
            let more = Status::MORE_RESULTS;
            server.rows(&[b"\x01a\x01b"], more).ok(more).rows(&[], NONE)
        },
        events: [
            &["Columns", "Eof", "Eof", "Ok", "Columns", "Eof", "Eof"],
            &["Columns", "Ok", "Ok", "Columns", "Ok"],
        ],
    },
    Row {
        name: "an error in the second result",
        shape: Shape::Results,
        server: |server| server.ok(Status::MORE_RESULTS).error(),
        events: [&["Ok", "Err"], &["Ok", "Err"]],
    },
    Row {
        name: "a prepared statement with parameters and columns",
        shape: Shape::Prepared,
        server: |server| {
            let head = b"\0\x01\0\0\0\x03\0\x02\0\0\0\0";
            server.raw(head).definitions(2, NONE).definitions(3, NONE)
        },
        events: [&["Prepared", "Eof", "Eof"], &["Prepared"]],
    },
    Row {
        name: "a prepared statement with columns",
        shape: Shape::Prepared,
        server: |server| server.raw(b"\0\x01\0\0\0\x03\0\0\0\0\0\0").definitions(3, NONE),
        events: [&["Prepared", "Eof"], &["Prepared"]],
    },
    Row {
        name: "a prepared statement with parameters",
        shape: Shape::Prepared,
        server: |server| server.raw(b"\0\x01\0\0\0\0\0\x02\0\0\0\0").definitions(2, NONE),
        events: [&["Prepared", "Eof"], &["Prepared"]],
    },
    Row {
        name: "a prepared statement with neither",
        shape: Shape::Prepared,
        server: |server| server.raw(b"\0\x01\0\0\0\0\0\0\0\0\0\0"),
        events: [&["Prepared"], &["Prepared"]],
    },
    Row {
        name: "rows of a cursor",
        shape: Shape::Rows,
        server: |server| server.raw(b"\0\0\x01a").end(Status::LAST_ROW_SENT),
        events: [&["Eof"], &["Ok"]],
    },
    Row {
        name: "the columns of a table",
        shape: Shape::Columns,
        server: |server| server.raw(b"\x03def").raw(b"\x03def").end(NONE),
        events: [&["Eof"], &["Ok"]],
    },
    Row {
        name: "EOF to a command",
        shape: Shape::Done,
        server: |server| server.eof(NONE),
        events: [&["Eof"], &["Eof"]],
    },
    Row {
        name: "statistics",
        shape: Shape::Text,
        server: |server| server.raw(b"Uptime: 1"),
        events: [&[], &[]],
    },
    Row {
        name: "a login by another method",
        shape: Shape::Login,
        server: |server| server.raw(b"\xfemethod\0salt\0").raw(b"\x01\x03").ok(NONE),
        events: [
            &["AuthSwitch", "AuthMore", "Ok"],
            &["AuthSwitch", "AuthMore", "Ok"],
        ],
    },
];

#[test]
fn replies_end_where_their_last_packet_ends() {
    each_row(ROWS, |row| {
        for (capabilities, events) in [PLAIN, ALL].into_iter().zip(row.events) {
            let bytes = (row.server)(Server::new(capabilities)).bytes;
            let more = [&bytes[..], b"\x01\0\0\x01"].concat();
            let whole = read(row.shape, capabilities, [&more[..]]);
            assert_eq!(
                (whole.end, whole.fault),
                (Some(bytes.len()), None),
                "{}",
                row.name
            );
            assert_eq!(names(&whole), events, "{}", row.name);
            for size in 1..bytes.len() {
                assert_eq!(
                    read(row.shape, capabilities, more.chunks(size)),
                    whole,
                    "{}",
                    row.name
                );
            }
            assert_eq!(
                read(row.shape, capabilities, [&bytes[..bytes.len() - 1]]).end,
                None
            );
        }
    });
}

#[test]
fn a_cursor_has_columns_and_no_rows() {
    let cursor = Status::CURSOR_EXISTS;
    let plain = Server::new(PLAIN).raw(&[1]).definitions(1, cursor).bytes;
    assert_eq!(read(Shape::Results, PLAIN, [&plain[..]]).end, Some(plain.len()));
    let all = Server::new(ALL)
        .raw(&[1])
        .definitions(1, cursor)
        .end(cursor)
        .bytes;
    assert_eq!(read(Shape::Results, ALL, [&all[..]]).end, Some(all.len()));
}

#[test]
fn output_parameters_are_followed_by_a_result_that_only_their_first_end_tells() {
    let more = Status(Status::MORE_RESULTS.0 | Status::OUTPUT_PARAMETERS.0);
    let begun = Server::new(PLAIN).raw(&[1]).definitions(1, more);
    let bytes = begun.raw(b"\0\0\x07").eof(NONE).ok(NONE).bytes;
    assert_eq!(read(Shape::Results, PLAIN, [&bytes[..]]).end, Some(bytes.len()));
}

#[test]
fn a_command_without_reply_takes_no_byte() {
    let mut reader = ReplyReader::new(Shape::Nothing, PLAIN, 1);
    assert!(reader.is_ended());
    assert_eq!(reader.read(b"\x01").unwrap().taken, 0);
}

#[test]
fn what_no_server_sends_is_a_fault_that_says_so() {
    #[derive(Debug)]
    struct Case(Shape, Capabilities, Vec<u8>, Fault);
    let one = |payload: &[u8]| Server::new(PLAIN).raw(payload).bytes;
    let columns = |payload: &[u8]| Server::new(PLAIN).raw(&[1]).raw(b"\x03def").raw(payload).bytes;
    let track = |payload: &[u8]| Server::new(ALL).raw(payload).bytes;
    use Fault::{Columns, Empty, FirstByte, LocalInfile, Progress, Sequence, TooLong, Trailing, Truncated};
    let trackers = Truncated("list of session trackers");
    each_row(
        [
            Case(Shape::Results, PLAIN, one(b""), Empty),
            Case(Shape::Results, PLAIN, one(b"\xfb/etc/passwd"), LocalInfile),
            Case(
                Shape::Results,
                PLAIN,
                one(b"\xff\xff\xff\x01\x01\x01\0\0\0"),
                Progress,
            ),
            Case(Shape::Results, PLAIN, one(b"\xff\x01"), Truncated("ERR packet")),
            Case(Shape::Results, PLAIN, one(b"\0\x01"), Truncated("OK packet")),
            Case(Shape::Results, PLAIN, one(b"\0\xff"), Truncated("OK packet")),
            Case(
                Shape::Results,
                PLAIN,
                one(b"\x01\x01"),
                Trailing("head of a result"),
            ),
            Case(
                Shape::Results,
                PLAIN,
                one(b"\xfc\x01"),
                Truncated("head of a result"),
            ),
            Case(Shape::Results, PLAIN, one(b"\xfd\0\0\x01"), Columns(0x1_0000)),
            Case(Shape::Results, PLAIN, one(b"\xfc\0\0"), Columns(0)),
            Case(
                Shape::Results,
                PLAIN,
                one(&[1; 70_000]),
                TooLong("head of a reply"),
            ),
            Case(Shape::Results, PLAIN, columns(b"\0"), FirstByte(0)),
            Case(
                Shape::Results,
                PLAIN,
                columns(b"\xfe\0\0\0"),
                Truncated("EOF packet"),
            ),
            Case(
                Shape::Results,
                PLAIN,
                columns(b"\xfe\0\0\0\0\0"),
                Trailing("EOF packet"),
            ),
            Case(
                Shape::Results,
                ALL,
                track(b"\0\0\0\0\x40\0\0\0\x02\0\x05"),
                trackers,
            ),
            Case(
                Shape::Results,
                ALL,
                track(b"\0\0\0\0\x40\0\0\0\x09\0"),
                Truncated("OK packet"),
            ),
            Case(
                Shape::Results,
                ALL,
                track(b"\0\0\0\0\x40\0\0\0\x04\0\x02\x01a"),
                trackers,
            ),
            Case(
                Shape::Results,
                ALL,
                track(b"\0\0\0\0\x40\0\0\0\x05\x01\x03\x01ab"),
                Trailing("list of session trackers"),
            ),
            Case(
                Shape::Results,
                ALL,
                track(b"\0\0\0\0\0\0\0\x01ab"),
                Trailing("OK packet"),
            ),
            Case(Shape::Done, PLAIN, one(b"\x05"), FirstByte(5)),
            Case(Shape::Prepared, PLAIN, one(b"\xfe\0\0\0\0"), FirstByte(0xfe)),
            Case(
                Shape::Prepared,
                PLAIN,
                one(b"\0\x01\0"),
                Truncated("head of a prepared statement"),
            ),
            Case(Shape::Login, PLAIN, one(b"\x02"), FirstByte(2)),
            Case(Shape::Login, PLAIN, one(b"\xfe"), Fault::Version("login method")),
            Case(
                Shape::Results,
                PLAIN,
                b"\x01\0\0\0\0".to_vec(),
                Sequence {
                    expected: 1,
                    found: 0,
                },
            ),
        ],
        |Case(shape, capabilities, bytes, fault)| {
            for size in [1, 2, 5, 1 << 20] {
                let read = read(*shape, *capabilities, bytes.chunks(size));
                assert_eq!(
                    (read.fault, read.end),
                    (Some(*fault), None),
                    "in pieces of {size}"
                );
            }
        },
    );
}

#[test]
fn an_ok_packet_is_read_as_it_was_written_without_what_the_client_did_not_ask_for() {
    let trackers = Trackers::read(b"\x01\x03\x02db\x02\x011").unwrap();
    let ok = OkPacket {
        affected_rows: 300,
        last_insert_id: 1 << 40,
        status: Status(Status::AUTOCOMMIT.0 | Status::SESSION_CHANGED.0),
        warnings: 2,
        info: b"Rows matched: 1",
        trackers,
        ..OkPacket::default()
    };
    let mut out = Vec::new();
    ok.append(ALL, 1, &mut out);
    assert_eq!(OkPacket::read(&out[4..], ALL, false), Ok(ok));
    out.clear();
    ok.append(PLAIN, 1, &mut out);
    let plain = OkPacket {
        status: Status::AUTOCOMMIT,
        trackers: Trackers::default(),
        ..ok
    };
    assert_eq!(OkPacket::read(&out[4..], PLAIN, false), Ok(plain));
    for end in 0..8 {
        assert!(OkPacket::read(&out[4..4 + end], PLAIN, false).is_err(), "{end}");
    }
}

#[test]
fn trackers_say_what_has_changed() {
    let bytes = b"\0\x0f\x0aautocommit\x03OFF\x01\x03\x02db\x02\x011\x03\x04\0\x02id\
        \x04\x01\0\x05\x09\x08T_R_____\x07\x01x";
    let all: Vec<_> = Trackers::read(bytes).unwrap().collect();
    let expected = [
        Tracker::Variable {
            name: b"autocommit",
            value: b"OFF",
        },
        Tracker::Schema(b"db"),
        Tracker::State(b"1"),
        Tracker::Gtids(b"id"),
        Tracker::Characteristics(b""),
        Tracker::Transaction(b"T_R_____"),
        Tracker::Other(7, b"x"),
    ];
    assert_eq!(all, expected);
    // One entry may name several variables.
    let two = Trackers::read(b"\0\x08\x01a\x011\x01b\x012").unwrap();
    assert_eq!(two.count(), 2);
}

#[test]
fn an_ok_packet_that_is_longer_than_what_is_kept_is_cut_for_any_split() {
    let value = vec![b'v'; LONGEST_CONTROL];
    let entry = [b"\x02\x01n\xfd\0\0\x01".as_slice(), &value].concat();
    let len = (entry.len() as u32).to_le_bytes();
    let trackers = [&[0, 0xfd, len[0], len[1], len[2]], &entry[..]].concat();
    let mut out = Vec::new();
    let ok = OkPacket {
        affected_rows: 5,
        status: Status::SESSION_CHANGED,
        info: &trackers,
        ..OkPacket::default()
    };
    ok.append(PLAIN, 1, &mut out);
    for size in [1000, 4099, out.len()] {
        let mut reader = ReplyReader::new(Shape::Results, ALL, 1);
        let mut last = None;
        for piece in out.chunks(size) {
            let step = reader.read(piece).unwrap();
            if let Event::Ok(ok) = step.event {
                last = Some((ok.affected_rows, ok.is_cut, ok.trackers.count(), step.is_last));
            }
        }
        assert_eq!(last, Some((5, true, 0, true)), "in pieces of {size}");
    }
}

#[test]
fn a_change_that_was_there_before_the_rows_is_told_behind_them() {
    let changed = EofPacket {
        warnings: 0,
        status: Status::SESSION_CHANGED,
    };
    let mut bytes = b"\x01\0\0\x01\x01\x06\0\0\x02\x03def\x01a".to_vec();
    changed.append(3, &mut bytes);
    bytes.extend_from_slice(b"\x02\0\0\x04\x01a");
    changed.append(5, &mut bytes);
    let mut parse = Parse::default();
    let found = find(&mut parse, Shape::Results, PLAIN, Some(1), &bytes).unwrap();
    let (len, end, event) = (bytes.len() as u32, 9, Event::Eof(changed));
    assert_eq!(found, ReplyPart::Last { len, end, event });
}

#[test]
fn a_row_of_any_size_is_passed_on() {
    let large = [&b"\xfe\0\0\0\x01\0\0\0\0"[..], &vec![0xfe; 17 << 20]].concat();
    for capabilities in [PLAIN, ALL] {
        let bytes = Server::new(capabilities)
            .rows(&[&large, b"\x01a\x01b"], NONE)
            .bytes;
        let read = read(Shape::Results, capabilities, bytes.chunks(100_000));
        assert_eq!(read.end, Some(bytes.len()));
    }
}

#[test]
fn an_error_of_a_greeting_has_no_state() {
    let error = ErrPacket::read(b"\xff\x10\x04Too many connections").unwrap();
    assert_eq!(
        (error.code, error.state, error.message),
        (1040, None, &b"Too many connections"[..])
    );
    let error = ErrPacket::read(b"\xff\x28\x04#42000wrong").unwrap();
    assert_eq!(
        (error.code, error.state, error.message),
        (1064, Some(*b"42000"), &b"wrong"[..])
    );
}
