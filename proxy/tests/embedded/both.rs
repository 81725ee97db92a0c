//! A memcached and an embedded server that get the same commands.

use std::{
    cell::RefCell,
    collections::HashMap,
    io::{Read, Write},
    os::unix::net::UnixStream,
    process::{Child, Command as Process, Stdio},
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use proxima_wire::{
    memcache::{Limits, request},
    message::Parsed,
};

use crate::server::Embedded;

/// Both servers. Dropping it stops memcached.
pub(crate) struct Both {
    process: Child,
    stream: UnixStream,
    embedded: Embedded,
    /// The number of misses that ended replies of memcached.
    pub(crate) misses: u64,
    /// The cas ids that each side has shown so far, in the order of their appearance.
    cas: RefCell<[HashMap<u64, usize>; 2]>,
}

/// The miss with which memcached ends every reply.
const END: &[u8] = b"EN k#end\r\n";

impl Drop for Both {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Both {
    pub(crate) fn start() -> Self {
        // A socket's path cannot be taken by another program, as a free port can. Once connected, it is not
        // needed.
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let process = Process::new("memcached")
            .args(["-u", "root", "-t", "1", "-s"])
            .arg(&socket)
            // memcached's background thread holds items that were read twice, and then a shorter number takes
            // less room.
            .args(["-o", "no_lru_maintainer,no_lru_crawler"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("memcached is installed (Debian's package `memcached`)");
        let stream = (0..100)
            .find_map(|_| {
                UnixStream::connect(&socket).ok().or_else(|| {
                    sleep(Duration::from_millis(50));
                    None
                })
            })
            .expect("memcached listens within five seconds");
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut both = Self {
            process,
            stream,
            embedded: Embedded::start(),
            misses: 0,
            cas: RefCell::default(),
        };
        // From here on every item's cas id is greater than those of placeholders without an item.
        for _ in 0..4 {
            both.same("set start 0 0 0\r\n\r\n");
        }
        both.same("delete start\r\n");
        both
    }

    /// Sends one command to both, and compares. `{cas k}` becomes the cas id that the item `k` has at each
    /// side (2 if there is none), `{old k}` the one before, `{new k}` the one after it, `{unix N}` the moment
    /// N seconds from now.
    pub(crate) fn same(&mut self, command: &str) {
        let [ours, theirs] = self.replies(command);
        let [ours, theirs] = self.normal([&ours, &theirs]);
        assert!(
            is_close(&ours, &theirs),
            "to {:?}\nembedded  {:?}\nmemcached {:?}",
            cut(command),
            cut(&ours),
            cut(&theirs)
        );
    }

    /// The answers of the embedded server and of memcached.
    pub(crate) fn replies(&mut self, command: &str) -> [Vec<u8>; 2] {
        let ours = fill(command, &mut |key| {
            self.embedded.send(format!("me {key}\r\n").as_bytes())
        });
        let theirs = fill(command, &mut |key| {
            self.raw_memcached(format!("me {key}\r\n").as_bytes())
        });
        let limits = Limits {
            value: 8 << 20,
            ..Limits::default()
        };
        if matches!(request(ours.as_bytes(), &limits), Parsed::Bad(_)) {
            // The codec refuses the line in the newest server's words, and this server is older. Tests in
            // `wire` check that.
            return Default::default();
        }
        [
            self.embedded.send(ours.as_bytes()),
            self.raw_memcached(theirs.as_bytes()),
        ]
    }

    /// The reply to `bytes`. A miss behind them shows where it ends.
    fn raw_memcached(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.stream
            .write_all(&[bytes, b"mg #end k\r\n"].concat())
            .unwrap();
        self.misses += 1;
        let (mut reply, mut part) = (Vec::new(), vec![0; 1 << 16]);
        while !reply.ends_with(END) {
            let length = self.stream.read(&mut part).unwrap();
            assert_ne!(length, 0, "memcached closed the connection");
            reply.extend_from_slice(&part[..length]);
        }
        reply.truncate(reply.len() - END.len());
        reply
    }

    /// The replies with their cas ids renamed to `#1`, `#2` in the order in which each side first showed
    /// them.
    fn normal(&self, replies: [&[u8]; 2]) -> [String; 2] {
        let mut all = self.cas.borrow_mut();
        let mut side = 0;
        replies.map(|reply| {
            let names = &mut all[side];
            side += 1;
            let mut lines = Vec::new();
            for line in String::from_utf8_lossy(reply).split("\r\n") {
                let words: Vec<&str> = line.split(' ').collect();
                let has_cas = |(at, word): (usize, &&str)| match words[0] {
                    "VALUE" => at == 4,
                    "HD" | "VA" | "EX" | "NF" | "NS" => word.starts_with('c') && at > 0,
                    "ME" => word.starts_with("cas="),
                    _ => false,
                };
                let mut rename = |(at, word): (usize, &&str)| {
                    let digits = word.trim_start_matches(|letter: char| !letter.is_ascii_digit());
                    match digits.parse::<u64>() {
                        Ok(id) if id != 0 && has_cas((at, word)) => {
                            let next = names.len() + 1;
                            let name = *names.entry(id).or_insert(next);
                            format!("{}#{name}", word.strip_suffix(digits).unwrap_or_default())
                        }
                        // The embedded store has one class of items.
                        _ if words[0] == "ME" && word.starts_with("cls=") => "cls=1".to_owned(),
                        _ => (*word).to_owned(),
                    }
                };
                lines.push(
                    words
                        .iter()
                        .enumerate()
                        .map(&mut rename)
                        .collect::<Vec<_>>()
                        .join(" "),
                );
            }
            lines.join("\r\n")
        })
    }
}

/// The beginning of a long text, for messages.
fn cut(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Replaces the placeholders; `show` answers `me`.
fn fill(command: &str, show: &mut dyn FnMut(&str) -> Vec<u8>) -> String {
    let Some((before, rest)) = command.split_once('{') else {
        return command.to_owned();
    };
    let (place, after) = rest.split_once('}').expect("a closed placeholder");
    let (name, argument) = place.split_once(' ').expect("a placeholder with an argument");
    let number = if name == "unix" {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        now + argument.parse::<i64>().unwrap()
    } else {
        let shown = String::from_utf8_lossy(&show(argument)).into_owned();
        let cas = shown
            .split("cas=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .unwrap_or(2);
        match name {
            "cas" => cas,
            "old" => cas - 1,
            "new" => cas + 1,
            other => panic!("no placeholder {other}"),
        }
    };
    format!("{before}{number}{}", fill(after, show))
}

/// Whether two replies are equal. Times may differ by one second, as the servers count seconds from different
/// moments.
fn is_close(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (ours.split([' ', '\r']), theirs.split([' ', '\r']));
    ours.clone().count() == theirs.clone().count()
        && ours.zip(theirs).all(|(our, their)| {
            our == their
                || ["t", "l", "exp=", "la="].iter().any(|name| {
                    let number = |word: &str| word.strip_prefix(name)?.parse::<i64>().ok();
                    matches!((number(our), number(their)), (Some(a), Some(b)) if (a - b).abs() <= 1)
                })
        })
}
