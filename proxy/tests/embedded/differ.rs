//! The embedded server's replies, compared with the recorded ones of the newest memcached
//! (`wire/captures/differ.tsv`).

use proxima_wire::{
    memcache::{Limits, request},
    message::Parsed,
};

use crate::server::Embedded;

#[path = "../../../wire/tests/memcache/capture.rs"]
#[allow(dead_code)]
mod capture;

/// The commands that followed each line, and the items that existed before it.
const TAIL: &[u8] = b"mn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\n";
const FIRST: &[u8] = b"set a 5 0 3\r\nabc\r\nset n 0 0 2\r\n41\r\n";

/// The reply without the parts that differ between servers: versions, cas ids and times.
fn masked(reply: &[u8]) -> Vec<u8> {
    let text = reply.escape_ascii().to_string();
    let (head, rest) = text.split_once(r"\r\n").unwrap_or((&text, ""));
    let words = head.split(' ').enumerate().map(|(at, word)| {
        let is_number = word.len() > 1
            && word[1..]
                .trim_start_matches('-')
                .bytes()
                .all(|byte| byte.is_ascii_digit());
        match (&head[..head.len().min(2)], at) {
            ("VE", 1..) | ("VA", 4) if head.starts_with("VERSION") || head.starts_with("VALUE") => {
                "0".to_owned()
            }
            ("HD" | "VA", 1..) if is_number && word.starts_with(['c', 'l', 't', 'h']) => {
                format!("{}0", &word[..1])
            }
            _ => word.to_owned(),
        }
    });
    let head = if head.starts_with("ME ") {
        head.split(' ').take(2).chain(["0"]).collect::<Vec<_>>().join(" ")
    } else {
        words.collect::<Vec<_>>().join(" ")
    };
    format!(r"{head}\r\n{rest}").into_bytes()
}

#[test]
fn embedded_store_answers_recorded_lines_as_the_newest_memcached() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/captures/differ.tsv");
    for record in std::fs::read_to_string(path).unwrap().lines() {
        let [line, older, newer] = record.split('\t').collect::<Vec<_>>()[..] else {
            continue;
        };
        let newer = if newer == "=" { older } else { newer };
        let line = capture::decode(line);
        let Parsed::Head(head) = request(&[&line, TAIL].concat(), &Limits::default()) else {
            // The codec refuses this line before it comes here, and has tests of its own.
            continue;
        };
        let Some((taken, theirs)) = newer.split_once(' ') else {
            continue;
        };
        // Half a command behind the line proves nothing, and cas ids differ between servers.
        if taken == "?" || matches!(head.body, 2 | 3) || !head.more_keys.is_empty() {
            continue;
        }
        let server = Embedded::start();
        server.send(FIRST);
        let ours = server.send(&[&line, &TAIL[..head.body as usize]].concat());
        compared += 1;
        if masked(&ours) != masked(&capture::decode(theirs)) {
            wrong.push(format!(
                "{}: {}, but {theirs}",
                line.escape_ascii(),
                ours.escape_ascii()
            ));
        }
    }
    assert!(compared > 800, "{compared} lines");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
