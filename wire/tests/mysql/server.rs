//! The installed MariaDB, and connections to it that speak by the codec.

use std::{
    io::{Read, Write},
    os::unix::{fs::MetadataExt, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread::sleep,
    time::Duration,
};

use proxima_wire::mysql::{
    Attributes, Capabilities, Event, Fault, Greeting, Header, Hello, Login, OkPacket, Packets, ReplyReader,
    SALT, SPOKEN, Shape, Status, Tracker, append_packet,
};

/// What came of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// The number of the error.
    pub(crate) error: Option<u16>,
    /// A transaction is open, or something of the session has changed.
    pub(crate) is_changed: bool,
}

/// A connection.
pub(crate) struct Client {
    stream: UnixStream,
    reader: ReplyReader,
    heard: Vec<u8>,
}

impl Client {
    /// Logs in as `root` without a password.
    fn log_in(stream: UnixStream) -> Option<Self> {
        let (client, outcome) = Self::log_in_as(stream, b"root", |_| Vec::new())?;
        assert_eq!(outcome.error, None, "the login fails");
        Some(client)
    }

    /// Logs in as this user, who answers this to the server's salt.
    fn log_in_as(
        mut stream: UnixStream,
        user: &[u8],
        answer: impl FnOnce(&[u8; SALT]) -> Vec<u8>,
    ) -> Option<(Self, Outcome)> {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let greeting = message(&mut stream)?;
        let greeting = Greeting::read(&greeting).ok()?;
        let answer = answer(&greeting.salt);
        let capabilities = SPOKEN
            .both(greeting.capabilities)
            .with(Capabilities::MYSQL)
            .without(Capabilities::TLS);
        let login = Login {
            capabilities,
            largest_packet: 1 << 24,
            collation: 45,
            user,
            answer: &answer,
            database: b"test",
            method: b"mysql_native_password",
            attributes: Attributes::default(),
        };
        let mut out = Vec::new();
        login.append(1, &mut out);
        assert_eq!(Hello::read(&out[Header::LEN..]), Ok(Hello::Login(login)));
        stream.write_all(&out).unwrap();
        let reader = ReplyReader::new(Shape::Login, capabilities, 2);
        let mut client = Self {
            stream,
            reader,
            heard: Vec::new(),
        };
        let outcome = client.outcome();
        Some((client, outcome))
    }

    /// Runs a text.
    pub(crate) fn ask(&mut self, text: &[u8]) -> Outcome {
        let mut out = Vec::new();
        append_packet(0, &mut out, |out| {
            out.push(3);
            out.extend_from_slice(text);
        });
        self.stream.write_all(&out).unwrap();
        self.reader.begin(Shape::Results, 1);
        self.outcome()
    }

    /// Reads the reply to its end, behind which nothing may come.
    fn outcome(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        while !self.reader.is_ended() {
            let mut part = [0; 8192];
            let len = self.stream.read(&mut part).unwrap();
            assert!(len > 0, "the server has closed");
            self.heard.extend_from_slice(&part[..len]);
            let taken = read(&mut self.reader, &self.heard, &mut outcome).unwrap();
            self.heard.drain(..taken);
        }
        assert!(
            self.heard.is_empty(),
            "{} bytes behind the reply",
            self.heard.len()
        );
        outcome
    }
}

/// Does it tell of an open transaction or a change of the session? A read from a view of another database
/// tells the database again, as the server was in the other one meanwhile.
fn changes(ok: &OkPacket<'_>) -> bool {
    let mut trackers = ok.trackers;
    let mut is_back = ok.trackers;
    let is_back = is_back.any(|tracker| tracker == Tracker::Schema(b"test"));
    let is_change = |tracker| match tracker {
        Tracker::Schema(name) => name != b"test",
        Tracker::State(_) => !is_back,
        _ => true,
    };
    ok.status.has(Status::IN_TRANSACTION) || trackers.any(is_change)
}

/// Reads on, and notes what is said.
fn read(reader: &mut ReplyReader, bytes: &[u8], outcome: &mut Outcome) -> Result<usize, Fault> {
    let mut taken = 0;
    while taken < bytes.len() && !reader.is_ended() {
        let step = reader.read(&bytes[taken..])?;
        taken += step.taken;
        match step.event {
            Event::Ok(ok) => outcome.is_changed |= changes(&ok),
            Event::Err(error) => outcome.error = Some(error.code),
            _ => {}
        }
    }
    Ok(taken)
}

/// The next message as a whole.
fn message(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let (mut packets, mut payload) = (Packets::from(0), Vec::new());
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        let piece = packets.next(&byte).unwrap();
        payload.extend_from_slice(piece.payload);
        if piece.is_last {
            return Some(payload);
        }
    }
}

/// A server of its own for a test.
pub(crate) struct Server {
    process: Child,
    folder: PathBuf,
}

impl Server {
    /// The installed server; `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = installed("mariadbd") else {
            println!("skipped: mariadbd is missing");
            return None;
        };
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Relaxed);
        let folder = std::env::temp_dir().join(format!("proxima-mysql-{}-{number}", std::process::id()));
        let data = folder.join("data");
        std::fs::create_dir_all(&folder).unwrap();
        // The server refuses to run as root unless it is told to. One that starts removes temporary tables
        // that it finds, those of a server beside it, too.
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        let options = |process: &mut Process| {
            process
                .arg("--no-defaults")
                .args(is_root.then_some("--user=root"))
                .arg(option("--datadir", &data))
                .arg(option("--tmpdir", &folder));
            process.stdout(Stdio::null()).stderr(Stdio::null());
        };
        let mut install = Process::new(installed("mariadb-install-db")?);
        options(&mut install);
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        assert!(install.status().unwrap().success(), "no data directory");
        std::fs::create_dir_all(data.join("test")).unwrap();
        let mut server = Process::new(program);
        options(&mut server);
        server.args(["--skip-networking", "--innodb-flush-log-at-trx-commit=0"]);
        server.args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"]);
        server.arg(option("--socket", &folder.join("socket")));
        server.arg(option("--pid-file", &folder.join("pid")));
        server.arg(option("--secure-file-priv", &folder));
        let process = server.spawn().unwrap();
        Some(Self { process, folder })
    }

    /// What comes of a login of this user, who answers this to the server's salt.
    pub(crate) fn log_in(&self, user: &[u8], answer: impl FnOnce(&[u8; SALT]) -> Vec<u8>) -> Outcome {
        let stream = UnixStream::connect(self.folder.join("socket")).unwrap();
        Client::log_in_as(stream, user, answer).unwrap().1
    }

    /// A connection, once the server takes some.
    pub(crate) fn connect(&self) -> Client {
        let connected = (0..800).find_map(|_| {
            sleep(Duration::from_millis(25));
            Client::log_in(UnixStream::connect(self.folder.join("socket")).ok()?)
        });
        connected.expect("mariadbd does not start")
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// The path of a program. Servers are in `sbin`, which not everybody has in PATH.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/sbin"]);
    folders
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
