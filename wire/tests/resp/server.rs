//! The installed server, and connections to it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command as Process, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread::sleep,
    time::Duration,
};

use crate::requests::array;

/// A value of RESP2 or RESP3.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// An array, a set, or the keys and values of a map.
    List(Vec<Value>),
    Push(Vec<Value>),
    Text(String),
    Number(i64),
    Null,
    Error(String),
}

impl Value {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub(crate) fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            other => panic!("{other:?} is no list"),
        }
    }

    pub(crate) fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }
}

/// A connection.
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    /// The bytes of the replies since the last request.
    pub(crate) bytes: Vec<u8>,
}

impl Client {
    pub(crate) fn ask(&mut self, words: &str) -> Value {
        self.send(&array(words));
        self.value()
    }

    /// Sends one request or several.
    pub(crate) fn send(&mut self, requests: &[u8]) {
        self.bytes.clear();
        self.stream.get_mut().write_all(requests).unwrap();
    }

    /// The next reply or push.
    pub(crate) fn value(&mut self) -> Value {
        let begin = self.bytes.len();
        self.stream.read_until(b'\n', &mut self.bytes).unwrap();
        let line = String::from_utf8(self.bytes[begin..].to_vec()).unwrap();
        let line = line.strip_suffix("\r\n").expect("the server has closed");
        let number = || line[1..].parse::<i64>().unwrap();
        match &line[..1] {
            "*" | "~" | ">" | "%" | "$" if number() < 0 => Value::Null,
            "_" => Value::Null,
            "*" | "~" => Value::List(self.values(number())),
            ">" => Value::Push(self.values(number())),
            "%" => Value::List(self.values(2 * number())),
            "$" | "=" => {
                let begin = self.bytes.len();
                let end = begin + number() as usize;
                self.bytes.resize(end + 2, 0);
                self.stream.read_exact(&mut self.bytes[begin..]).unwrap();
                Value::Text(String::from_utf8_lossy(&self.bytes[begin..end]).into_owned())
            }
            ":" => Value::Number(number()),
            "-" => Value::Error(line[1..].to_owned()),
            _ => Value::Text(line.to_owned()),
        }
    }

    fn values(&mut self, count: i64) -> Vec<Value> {
        (0..count).map(|_| self.value()).collect()
    }
}

/// A server of its own for a test.
pub(crate) struct Server {
    process: Child,
    folder: PathBuf,
}

impl Server {
    /// The installed server, with a connection; `None` if it is not installed.
    pub(crate) fn start() -> Option<(Self, Client)> {
        // Tests of one process run at a time.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Relaxed);
        let name = format!("proxima-resp-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let process = Process::new("redis-server")
            .args(["--port", "0", "--save", "", "--enable-debug-command", "local"])
            .arg("--unixsocket")
            .arg(folder.join("socket"))
            .arg("--dir")
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn();
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                println!("skipped: redis-server: {error}");
                return None;
            }
        };
        let server = Self { process, folder };
        let connected = (0..400).find_map(|_| {
            sleep(Duration::from_millis(25));
            server.connect()
        });
        Some((server, connected.expect("redis-server does not start")))
    }

    pub(crate) fn connect(&self) -> Option<Client> {
        let stream = UnixStream::connect(self.folder.join("socket")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Some(Client {
            stream: BufReader::new(stream),
            bytes: Vec::new(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
