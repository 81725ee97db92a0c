//! What is answered without a server, beside what empty servers have answered
//! (`captures/resp/empty.tsv`).

use std::collections::BTreeSet;

use proxima_wire::resp::{Command, Handling, append_empty, append_empty_transaction, find};

use crate::requests::array;

const ROWS: &str = include_str!("../../commands/empty.tsv");
const RECORDED: &str = include_str!("../../captures/resp/empty.tsv");

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
}

fn answered(request: &str, form: u16) -> Option<String> {
    let message = array(request);
    let command = Command::of(find(&message).0)?;
    let mut out = Vec::new();
    let is_known = append_empty(command, form, &message, &mut out);
    is_known.then(|| String::from_utf8(out).unwrap().replace("\r\n", "\\r\\n"))
}

#[test]
fn every_request_is_answered_as_by_an_empty_server_in_both_versions() {
    let mut differ = Vec::new();
    let mut count = 0;
    for row in rows(RECORDED) {
        for (form, recorded) in [(0, row[1]), (1, row[2])] {
            let ours = answered(row[0], form);
            count += 1;
            if ours.as_deref() != Some(recorded) {
                differ.push((row[0], form, ours, recorded));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(count > 400, "{count}");
}

#[test]
fn every_command_that_an_empty_server_can_answer_was_recorded() {
    let recorded: BTreeSet<_> = rows(RECORDED).map(|row| find(&array(row[0])).0).collect();
    let without: BTreeSet<_> = rows(ROWS)
        .filter(|row| row[1].is_empty())
        .map(|row| row[0])
        .collect();
    let mut missing = Vec::new();
    for number in 0..Command::COUNT {
        let command = Command::of(number).unwrap();
        let is_led = !matches!(
            command.served,
            Handling::Here
                | Handling::Transaction
                | Handling::Channels
                | Handling::Refused
                | Handling::Container
                | Handling::Alone
                | Handling::Own
        );
        let is_help = command.name.ends_with("|help");
        if is_led && !is_help && !without.contains(command.name) && !recorded.contains(&number) {
            missing.push(command.name);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(without.len() < 20, "{without:?}");
}

#[test]
fn arguments_that_are_no_numbers_are_answered_as_by_servers() {
    for (request, expected) in [
        ("INCRBY k x", "-ERR value is not an integer or out of range\\r\\n"),
        (
            "DECRBY k -9223372036854775808",
            "-ERR value is not an integer or out of range\\r\\n",
        ),
        ("INCRBYFLOAT k x", "-ERR value is not a valid float\\r\\n"),
        ("ZINCRBY z nan a", "-ERR value is not a valid float\\r\\n"),
        (
            "SETRANGE k x abc",
            "-ERR value is not an integer or out of range\\r\\n",
        ),
        (
            "XPENDING a\rb {1}",
            "-NOGROUP No such key 'a b' or consumer group '{1}'\\r\\n",
        ),
    ] {
        assert_eq!(answered(request, 0).as_deref(), Some(expected), "{request}");
    }
    for request in ["SCRIPT LOAD s", "TIME", "FUNCTION HELP"] {
        assert_eq!(answered(request, 0), None, "{request}");
    }
}

#[test]
fn a_transaction_is_answered_by_the_replies_to_its_commands() {
    let words = ["MULTI", "SET k v", "HGETALL h", "PING", "TIME", "UNWATCH", "EXEC"];
    let message: Vec<u8> = words.into_iter().flat_map(array).collect();
    for (form, map) in [(0, "*0"), (1, "%0")] {
        let mut out = Vec::new();
        append_empty_transaction(form, &message, &mut out);
        let expected = format!(
            "+OK\r\n{}*5\r\n+OK\r\n{map}\r\n+PONG\r\n-ERR TIME is answered by servers alone, and this \
             route leads it to none: lead it to a pool\r\n+OK\r\n",
            "+QUEUED\r\n".repeat(5)
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn a_header_of_many_arguments_that_have_not_come_takes_no_memory() {
    let head = b"*2000000000\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$70000\r\n";
    let command = Command::of(find(head).0).unwrap();
    let mut out = Vec::new();
    assert!(append_empty(command, 0, head, &mut out));
    assert_eq!(out, b":1999999998\r\n");
}
