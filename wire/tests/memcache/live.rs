//! Random lines, against the installed memcached. The server must read a line that the codec accepts as the
//! same number of bytes, and answer it once. `differ` covers the lines that the codec refuses.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use proxima_wire::memcache::{
    Command, Limits, Rewrite, is_reply_whole, keys, reply, request, rewrite, silenced, single,
};
use proxima_wire::message::{Parsed, Request};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

const LIMITS: Limits = Limits {
    value: 1 << 20,
    mcrouters: false,
};

/// The request that follows every other. Its reply shows where the previous reply ends.
const NEXT: &[u8] = b"mg next-request k\r\n";
const NEXT_REPLY: &[u8] = b"EN knext-request\r\n";

struct Memcached {
    child: Child,
    folder: PathBuf,
}

impl Memcached {
    /// Starts a server on a Unix socket of its own.
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("proxima-wire-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let child = std::process::Command::new("memcached")
            .args(["-u", "root", "-t", "1", "-s"])
            .arg(folder.join("socket"))
            .stderr(Stdio::null())
            .spawn()
            .expect("the package memcached is needed");
        Self { child, folder }
    }

    fn connect(&self) -> UnixStream {
        for _ in 0..200 {
            if let Ok(client) = UnixStream::connect(self.folder.join("socket")) {
                client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                return client;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("memcached does not listen");
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sends `request` and returns its reply.
fn ask(server: &mut UnixStream, request: &[u8]) -> Vec<u8> {
    server.write_all(&[request, NEXT].concat()).unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(NEXT_REPLY) {
        let mut part = [0; 65536];
        let len = server.read(&mut part).unwrap();
        assert!(
            len > 0,
            "memcached closed the connection at {}",
            request.escape_ascii()
        );
        reply.extend_from_slice(&part[..len]);
    }
    reply.truncate(reply.len() - NEXT_REPLY.len());
    reply
}

/// Numbers, meta flags, and words that are wrong in most places.
const NUMBERS: &[&str] = &["0", "0", "1", "2", "10", "-1", "2147483647", "noreply"];
const FLAGS: &[&str] = &[
    "k", "q", "b", "v", "t", "c", "f", "s", "h", "l", "u", "O1", "T0", "N0", "R30", "MS", "ME", "MA", "C1",
    "F1", "I", "D2", "J3", "Lpath", "P", "0", "1",
];
const WRONG: &[&str] = &[
    "x",
    "1x",
    "-",
    "36893488147419103232",
    "T",
    "Nx",
    "MX",
    "!",
    "OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO",
    "noreply",
    "q",
];

/// Words that memcached misreads, or that newer servers read differently.
const STRANGE: &[&str] = &[
    "+1",
    "1\tx",
    "\t",
    "\r",
    "a\rb",
    "4294967297",
    "18446744073709551615",
    "-18446744073709551615",
    "1\0",
    "\0",
    "Zm9v!",
    "é",
];

/// A line with a command, mostly a key, and words that are mostly of one kind, some of them from `more`.
fn line(more: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<_> = Command::ALL
        .iter()
        .filter(|command| !matches!(command, Command::Quit | Command::Stats | Command::Verbosity))
        .map(|command| command.name())
        .chain(["", "GET", "mx"])
        .collect();
    let long: &'static str = "k".repeat(251).leak();
    let key = select(vec![
        "",
        "a",
        "a",
        "b",
        "Zm9v",
        "Zm9v",
        "Zm8=",
        "Zm9",
        "10",
        &long[..250],
        long,
    ]);
    let words = select(vec![NUMBERS, FLAGS]).prop_flat_map(move |words| {
        vec(
            prop_oneof![12 => select(words), 1 => select(WRONG), 1 => select(more)],
            0..7,
        )
    });
    let blank = select(vec![" ", " ", " ", " ", "  "]);
    let end = select(vec!["\r\n", "\r\n", "\n", " \r\n"]);
    (select(names), key, words, blank, end).prop_map(|(name, key, words, blank, end)| {
        let words: Vec<_> = [name, key]
            .into_iter()
            .chain(words)
            .filter(|word| !word.is_empty())
            .collect();
        format!("{}{end}", words.join(blank)).into_bytes()
    })
}

/// Checks that memcached answers the accepted `request`, whose bytes are `bytes`, exactly once.
fn check_accepted(server: &mut UnixStream, request: &Request, bytes: &[u8]) {
    let command = Command::from_number(request.command).unwrap();
    let text = bytes.escape_ascii().to_string();
    // The request is sent unchanged first. Quiet requests have no reply, and those with many keys have
    // several.
    let asked = ask(server, bytes);
    if request.is_quiet && !asked.is_empty() {
        let Parsed::Head(reply) = reply(command, &asked) else {
            panic!("{text}")
        };
        // A server answers an `ma` that made its item, but the reply does not say that it did.
        let made = command == Command::MetaArithmetic && text.contains(" N");
        assert!(
            made || !silenced(command, reply.outcome),
            "{text}: {}",
            asked.escape_ascii()
        );
    }
    // Then it is sent as on a lane: with a reply, one key, and maybe another key and expiry.
    let other = Rewrite {
        key: Some(b"other"),
        ttl: Some(100),
    };
    let mut heads = Vec::new();
    for key in keys(request, bytes).filter(|_| !request.more_keys.is_empty()) {
        let mut head = Vec::new();
        single(request, bytes, key.of(bytes), &mut head);
        heads.push(head);
    }
    for change in [Rewrite::default(), other]
        .into_iter()
        .filter(|_| request.more_keys.is_empty())
    {
        let mut head = Vec::new();
        if rewrite(request, bytes, &change, &mut head) {
            heads.push(head);
        } else {
            assert!(change.ttl.is_some() && text.starts_with("ms "), "{text}");
        }
    }
    for mut sent in heads {
        sent.extend_from_slice(&bytes[request.head as usize..]);
        let answer = ask(server, &sent);
        let Parsed::Head(reply) = reply(command, &answer) else {
            panic!("{text} as {}: {}", sent.escape_ascii(), answer.escape_ascii())
        };
        assert_eq!(
            reply.len(),
            answer.len() as u64,
            "{text}: {}",
            answer.escape_ascii()
        );
        assert!(
            is_reply_whole(&reply, &answer),
            "{text}: {}",
            answer.escape_ascii()
        );
    }
}

fn check(server: &mut UnixStream, line: &[u8]) {
    match request(line, &LIMITS) {
        Parsed::More => panic!("{}", line.escape_ascii()),
        Parsed::Head(request) if request.head as usize == line.len() => {
            let mut bytes = line.to_vec();
            bytes.resize(line.len() + (request.body as usize).saturating_sub(2), b'1');
            if request.body > 0 {
                bytes.extend_from_slice(b"\r\n");
            }
            check_accepted(server, &request, &bytes);
        }
        Parsed::Head(_) => {}
        Parsed::Bad(bad) => assert!(!bad.close, "{}", line.escape_ascii()),
    }
}

#[test]
fn random_accepted_lines_have_the_same_bytes_at_memcached() {
    let memcached = Memcached::start();
    for more in [WRONG, STRANGE] {
        TestRunner::new(Config {
            cases: 4000,
            failure_persistence: None,
            max_shrink_iters: 50,
            ..Config::default()
        })
        .run(&line(more), |line| {
            // Each line has a connection of its own, so that a failure does not affect the next one.
            check(&mut memcached.connect(), &line);
            Ok(())
        })
        .unwrap();
    }
}
