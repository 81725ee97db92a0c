//! The embedded server, used as a session uses it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use proxima::embedded::{
    store::{Limits, Store},
    {Connection, Connections, Context, memcache::answer},
};
use proxima_wire::{
    memcache::{self, Command, reply, request, silenced},
    message::Parsed,
};

/// A store with a clock.
pub(crate) struct Embedded {
    store: Store,
    start: Instant,
    /// Milliseconds that the clock is ahead of time.
    pub(crate) ahead: u64,
}

/// Two connections, one of which listens.
struct Two;

impl Connections for Two {
    fn current(&self) -> u64 {
        1
    }

    fn total(&self) -> u64 {
        2
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("rejected_connections", 3)]
    }

    fn reset_counts(&self) {}

    fn each(&self, show: &mut dyn FnMut(&Connection<'_>)) {
        let address = "tcp:127.0.0.1:11211";
        show(&Connection {
            id: 22,
            address,
            listener: None,
            state: "conn_listening",
            idle: 7,
        });
        let listener = Some(address);
        show(&Connection {
            id: 23,
            address: "tcp:127.0.0.1:40000",
            listener,
            state: "conn_parse_cmd",
            idle: 0,
        });
    }
}

impl Embedded {
    /// An empty server that is already a minute old.
    pub(crate) fn start() -> Self {
        let store = Store::new(Limits::default(), [1, 2, 3, 4]);
        Self {
            store,
            start: Instant::now(),
            ahead: 60_000,
        }
    }

    /// Passes each message to `answer` as a session does, with the codec's refusals, and silences quiet
    /// requests. The codec must read from the reply what `answer` has reported.
    pub(crate) fn send(&self, mut bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let used = match request(bytes, &memcache::Limits::default()) {
                Parsed::More => panic!("half a command: {bytes:?}"),
                Parsed::Bad(bad) => {
                    all.extend_from_slice(bad.reply);
                    bad.head as usize + bad.swallow as usize
                }
                Parsed::Head(head) => {
                    let command = Command::from_number(head.command).unwrap();
                    let message = &bytes[..head.len() as usize];
                    let mut out = Vec::new();
                    let answered = answer(&self.store, &self.context(), &head, message, &mut out);
                    if !matches!(command, Command::Stats | Command::LruCrawler | Command::Quit)
                        && head.more_keys.is_empty()
                    {
                        match reply(command, &out) {
                            Parsed::Head(read) => {
                                assert_eq!(
                                    read.outcome,
                                    answered.outcome,
                                    "{:?}",
                                    String::from_utf8_lossy(message)
                                );
                                assert_eq!(read.len(), out.len() as u64);
                            }
                            other => panic!("{other:?} from {:?}", String::from_utf8_lossy(&out)),
                        }
                    }
                    if !(head.is_quiet && silenced(command, answered.outcome)) {
                        all.extend_from_slice(&out);
                    }
                    message.len()
                }
            };
            bytes = &bytes[used..];
        }
        all
    }

    fn context(&self) -> Context<'_> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let now = self.ahead + self.start.elapsed().as_millis() as u64;
        Context {
            now,
            unix,
            begun: unix * 1000 - now,
            pid: 4711,
            threads: 4,
            largest_reply: 64 << 20,
            most_connections: 1024,
            connections: &Two,
        }
    }
}
