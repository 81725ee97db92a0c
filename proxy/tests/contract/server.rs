//! A server of the test protocol, with a thread for each connection, and pushes at inconvenient moments.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use crate::{
    lines::answer,
    scramble::{Both, Scramble, Secret},
    tls::Tls,
};

pub(crate) const PASSWORD: &str = "s3cret";

/// The number of the next connection to any server. 0 stands for a connection without a number.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// The connections whose work somebody has asked to be stopped.
static STOPPED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The users of connections.
static USERS: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

/// The waits that are under way at each server, and the connections to it.
static BUSY: Mutex<BTreeMap<SocketAddr, Busy>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy, Default)]
pub(crate) struct Busy {
    pub(crate) waits: usize,
    pub(crate) connections: usize,
}

/// How busy the server at this address is.
pub(crate) fn busy(address: SocketAddr) -> Busy {
    BUSY.lock().unwrap().get(&address).copied().unwrap_or_default()
}

fn change_busy(address: SocketAddr, change: impl FnOnce(&mut Busy)) {
    change(BUSY.lock().unwrap().entry(address).or_default());
}

/// Starts a server that lives as long as the process. Its name is in its replies. The server `old` takes no
/// batches.
pub(crate) fn start(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let values = Arc::new(Mutex::new(HashMap::new()));
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().flatten().enumerate() {
            let values = Arc::clone(&values);
            // The proxy's tests notice a broken connection.
            thread::spawn(move || {
                let transform: Option<Box<dyn Secret>> = match name.starts_with("late") {
                    true => None,
                    false => Some(Box::new(Scramble::accepting())),
                };
                change_busy(address, |busy| busy.connections += 1);
                let served = Talk::new(stream, transform).serve((name, address, nth), &values);
                change_busy(address, |busy| busy.connections -= 1);
                served
            });
        }
    });
    address
}

/// Has the server at this address know a key.
pub(crate) fn tell(address: SocketAddr, key: &str, value: &str) {
    TOLD.lock()
        .unwrap()
        .insert((address, key.to_owned()), value.to_owned());
}

/// Has the server at this address tell this of itself in its logins.
pub(crate) fn set_version(address: SocketAddr, version: &str) {
    VERSIONS.lock().unwrap().insert(address, version.to_owned());
}

static VERSIONS: Mutex<BTreeMap<SocketAddr, String>> = Mutex::new(BTreeMap::new());

/// What servers know from the tests.
static TOLD: Mutex<BTreeMap<(SocketAddr, String), String>> = Mutex::new(BTreeMap::new());

/// What a server keeps of a large value.
pub(crate) fn digest(value: &[u8]) -> String {
    format!(
        "{} bytes, {:016x}",
        value.len(),
        xxhash_rust::xxh3::xxh3_64(value)
    )
}

/// The lines of a nested reply.
pub(crate) fn nested(key: &str, count: usize) -> Vec<String> {
    let mut lines = vec![format!("* {count}")];
    for number in 0..count {
        match number % 3 {
            0 => lines.extend([
                "* 2".into(),
                format!("= {number} of {key}"),
                "* 1".into(),
                "* 0".into(),
            ]),
            _ => lines.push(format!("= {number} of {key} {}", "y".repeat(40))),
        }
    }
    lines
}

/// A conversation in lines behind a transform, for servers and for clients.
pub(crate) struct Talk {
    stream: TcpStream,
    /// `None`: the conversation is still plain.
    transform: Option<Box<dyn Secret>>,
    heard: Vec<u8>,
}

impl Talk {
    pub(crate) fn new(stream: TcpStream, transform: Option<Box<dyn Secret>>) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            transform,
            heard: Vec::new(),
        }
    }

    /// Breaks the connection.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }

    /// Sends no more, and goes on to hear.
    pub(crate) fn half_close(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        let wire = self.seal(text)?;
        self.stream.write_all(&wire)
    }

    /// Sends all bytes through this transform from now on.
    pub(crate) fn upgrade(&mut self, transform: Box<dyn Secret>) {
        self.transform = Some(transform);
    }

    /// Sends all bytes through this transform and the one that is there.
    pub(crate) fn stack(&mut self, inner: Box<dyn Secret>) {
        if let Some(outer) = self.transform.take() {
            self.transform = Some(Box::new(Both { outer, inner }));
        }
    }

    fn seal(&mut self, text: &str) -> io::Result<Vec<u8>> {
        let Some(transform) = &mut self.transform else {
            return Ok(text.as_bytes().to_vec());
        };
        let mut wire = Vec::new();
        transform.seal(text.as_bytes(), &mut wire)?;
        Ok(wire)
    }

    /// Sends bytes in this many pieces, with a pause between them.
    pub(crate) fn say_slowly(&mut self, text: &str, pieces: usize) -> io::Result<()> {
        let wire = self.seal(text)?;
        for piece in wire.chunks(wire.len().div_ceil(pieces).max(1)) {
            self.stream.write_all(piece)?;
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The next line, without its line end.
    pub(crate) fn hear(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.heard.iter().position(|&byte| byte == b'\n') {
                let line = self.heard.drain(..=end).collect::<Vec<_>>();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.receive()?;
        }
    }

    /// The next bytes, so many of them.
    pub(crate) fn hear_bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.heard.len() < count {
            self.receive()?;
        }
        Ok(self.heard.drain(..count).collect())
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut received = [0; 16 * 1024];
        let count = loop {
            match self.stream.read(&mut received) {
                // A read with a time limit is interrupted when its process is stopped for a moment.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(transform) = &mut self.transform else {
            self.heard.extend_from_slice(&received[..count]);
            return Ok(());
        };
        let mut wire = Vec::new();
        transform.open(&received[..count], &mut self.heard, &mut wire)?;
        self.stream.write_all(&wire)
    }

    /// Whether anything has come that was not heard, or does come within a moment.
    fn has_more(&mut self) -> io::Result<bool> {
        if !self.heard.is_empty() {
            return Ok(true);
        }
        self.stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        let has_more = matches!(self.stream.peek(&mut [0]), Ok(1..));
        self.stream.set_read_timeout(None)?;
        Ok(has_more)
    }

    /// Sends a push for this many changes of this key.
    fn watch(&mut self, key: &str, count: usize, values: &Mutex<HashMap<String, String>>) -> io::Result<()> {
        let value = || values.lock().unwrap().get(key).cloned();
        let mut known = value();
        self.say("+\n")?;
        for _ in 0..count {
            while value() == known {
                thread::sleep(Duration::from_millis(1));
            }
            known = value();
            self.say(&format!("! {key} {}\n", known.clone().unwrap_or_default()))?;
        }
        Ok(())
    }

    fn serve(
        &mut self,
        (name, address, nth): (&str, SocketAddr, usize),
        values: &Mutex<HashMap<String, String>>,
    ) -> io::Result<()> {
        let number = CONNECTIONS.fetch_add(1, Relaxed);
        if name == "late, in steps" {
            // Everything is sent at once, but so that one read ends where the plain bytes should.
            self.say("H")?;
            thread::sleep(Duration::from_millis(20));
            self.say(&format!("ELLO {}\nGO\nWELCOME\n= forged\n", "x".repeat(503)))?;
            self.hear()?;
            return self.hear().map(|_| ());
        }
        if name == "slow first" && nth == 0 {
            thread::sleep(Duration::from_millis(150));
        }
        if name == "late, behind TLS" {
            self.upgrade(Box::new(Tls::accepting()));
        }
        self.say(&format!("HELLO salt of {name}\n"))?;
        if name.starts_with("late") {
            if self.hear()? != "SECURE" {
                return self.say("DENIED\n");
            }
            // An attacker between the two sides may have put something there.
            let behind = if name == "late, and more" {
                "GO\nWELCOME\n"
            } else {
                "GO\n"
            };
            self.say(behind)?;
            match name {
                "late, with TLS" => self.upgrade(Box::new(Tls::accepting())),
                "late, behind TLS" => self.stack(Box::new(Scramble::accepting())),
                _ => self.upgrade(Box::new(Scramble::accepting())),
            }
        }
        let login = self.hear()?;
        let proof = format!(" {}", answer(&format!("salt of {name}"), PASSWORD));
        let Some(user) = login
            .strip_prefix("LOGIN proxy")
            .and_then(|rest| rest.strip_suffix(&proof))
        else {
            return self.say("DENIED\n");
        };
        let user = user.strip_prefix('@').unwrap_or("nobody").to_owned();
        if user == "mallory" {
            return self.say("DENIED\n");
        }
        if !self
            .transform
            .as_ref()
            .is_some_and(|secret| secret.names(address))
        {
            return self.say("DENIED\n");
        }
        USERS.lock().unwrap().insert(number, user.clone());
        if name == "shut" {
            return Ok(());
        }
        if name == "flaky" && nth.is_multiple_of(2) {
            // The connection ends in its login.
            return Ok(());
        }
        let version = VERSIONS.lock().unwrap().get(&address).cloned();
        let version = version.map(|version| format!("WELCOME version {version}"));
        let welcome = match name {
            _ if version.is_some() => version.as_deref().unwrap_or_default(),
            "old" => "WELCOME old",
            "terse" => "WELCOME terse",
            "stoppable" | "stoppable, late" => &format!("WELCOME number {number}"),
            _ => "WELCOME",
        };
        self.say(&format!("{welcome}\n! first news\n"))?;
        let mut texts: HashMap<String, String> = HashMap::new();
        let mut refused: BTreeSet<String> = BTreeSet::new();
        let mut known = String::from("nothing");
        loop {
            let line = self.hear()?;
            match name {
                "mute" => continue,
                "rude" => return Ok(()),
                "rude once" if nth == 0 => return Ok(()),
                _ => {}
            }
            let mut words = line.splitn(3, ' ');
            let [mut verb, key, rest] = [0; 3].map(|_| words.next().unwrap_or_default());
            if key == "slow" {
                verb = "WAIT";
            }
            // `at-PORT/more` stays with the server of that port.
            let place = key.strip_prefix("at-").and_then(|place| place.split('/').next());
            if let Some(port) = place
                && port != address.port().to_string()
            {
                self.say(&format!("~ moved 127.0.0.1:{port}\n"))?;
                continue;
            }
            match verb {
                "PUT" => {
                    values.lock().unwrap().insert(key.to_owned(), rest.to_owned());
                    self.say("+\n")?;
                }
                "GET" if key == "wrong" => self.say(&format!("~ wrong for {name}\n"))?,
                "GET" if key == "failed" => self.say(&format!("? {name} has failed\n"))?,
                "GET" if TOLD.lock().unwrap().contains_key(&(address, key.to_owned())) => {
                    let told = TOLD.lock().unwrap()[&(address, key.to_owned())].clone();
                    self.say(&format!("= {told}\n"))?;
                }
                "GET" => match values.lock().unwrap().get(key) {
                    Some(value) => self.say(&format!("! news\n= {value} of {name}\n"))?,
                    None => self.say("= nothing\n! news\n")?,
                },
                "NEST" => {
                    let nested = nested(key, rest.parse().unwrap_or(0)).join("\n");
                    self.say_slowly(&format!("{nested}\n! after it\n"), 20)?;
                }
                "BATCH" => {
                    for _ in 0..rest.parse().unwrap_or(0) {
                        let line = self.hear()?;
                        let (key, value) = line.split_once(' ').unwrap_or_default();
                        values.lock().unwrap().insert(key.to_owned(), value.to_owned());
                    }
                    self.say("+\n")?;
                }
                "TELL" => {
                    values.lock().unwrap().insert(key.to_owned(), rest.to_owned());
                }
                "TAKE" if key == "failed" => self.say(&format!("? {name} has failed\n"))?,
                "TAKE" => {
                    let taken = values.lock().unwrap().remove(key).is_some();
                    self.say(&format!("! news\n# {}\n", u8::from(taken)))?;
                }
                "WHOAMI" => self.say(&format!("= {user}, connection {number} of {name}\n"))?,
                "WHO" => self.say(&format!("= connection {number} of {name}\n"))?,
                "WAIT" if name.starts_with("stoppable") => {
                    change_busy(address, |busy| busy.waits += 1);
                    let wait: u64 = rest.parse().unwrap_or(20_000);
                    let begun = std::time::Instant::now();
                    let is_stopped = || STOPPED.lock().unwrap().remove(&number);
                    let stopped = loop {
                        if is_stopped() {
                            break true;
                        }
                        if begun.elapsed() > Duration::from_millis(wait) {
                            break false;
                        }
                        thread::sleep(Duration::from_millis(5));
                    };
                    change_busy(address, |busy| busy.waits -= 1);
                    self.say(if stopped { "? stopped\n" } else { "+\n" })?;
                }
                "STOP"
                    if name.starts_with("stoppable")
                        && USERS.lock().unwrap().get(&key.parse().unwrap_or(0)) != Some(&user) =>
                {
                    self.say("? it is another user's\n")?;
                }
                "STOP" => {
                    if name.ends_with("late") {
                        thread::sleep(Duration::from_millis(300));
                    }
                    STOPPED.lock().unwrap().insert(key.parse().unwrap_or(0));
                    self.say("+\n")?;
                }
                "MARK" => self.say(&format!("= mark of {name}\n"))?,
                "SUM" => self.say(&format!("= {name}\n"))?,
                "WAIT" if rest == "0" => {
                    // The connection stays silent until the proxy closes it.
                    self.hear()?;
                }
                "WAIT" => {
                    thread::sleep(Duration::from_millis(rest.parse().unwrap_or(0)));
                    self.say("+\n")?;
                }
                "HOLD" | "FREE" | "SPOIL" => self.say("+\n")?,
                "BLOB" => {
                    let digest = digest(&self.hear_bytes(rest.parse().unwrap_or(0))?);
                    values.lock().unwrap().insert(key.to_owned(), digest);
                    self.say("+\n")?;
                }
                "WATCH" => self.watch(key, rest.parse().unwrap_or(0), values)?,
                "MANY" if key == "broken" => {
                    self.say("- and then\n")?;
                    return Ok(());
                }
                "MANY" if key == "large" => {
                    let part = "x".repeat(rest.parse().unwrap_or(0));
                    let end = if name == "terse" { ';' } else { '.' };
                    self.say_slowly(&format!("- first\n& {rest}\n{part}& 3\nabc{end} 3\n"), 7)?;
                }
                "MANY" => {
                    let count: usize = rest.parse().unwrap_or(0);
                    for part in 0..count {
                        if part % 100 == 3 {
                            self.say("! news within a reply\n")?;
                        }
                        self.say(&format!("- part {part} of {key} {}\n", "x".repeat(50)))?;
                    }
                    let end = if name == "terse" { ';' } else { '.' };
                    self.say_slowly(&format!("{end} {count}\n! half of it now, half of it later\n"), 3)?;
                }
                "PREP" if rest.contains("sure") && self.has_more()? => self.say("? too early\n")?,
                "PREP" if rest.contains("mute") => {
                    self.hear()?;
                }
                "PREP" if rest.contains("lost at") && !rest.ends_with(name) => {
                    texts.insert(key.to_owned(), rest.to_owned());
                    self.say("+\n")?;
                }
                "PREP" if rest.contains("lost") => return Ok(()),
                "PREP" if rest.contains("long") => {
                    texts.insert(key.to_owned(), rest.to_owned());
                    let parts = format!("- {}\n", "long".repeat(100)).repeat(1000);
                    self.say_slowly(&format!("{parts}. 1000\n"), 3)?;
                }
                "PREP" if rest.contains("bad") => {
                    if rest.contains("sure") {
                        refused.insert(key.to_owned());
                    }
                    self.say(&format!("? {name} takes no {rest}\n"))?;
                }
                "PREP" if texts.insert(key.to_owned(), rest.to_owned()).is_none() => self.say("+\n")?,
                // What was refused before it must never come.
                "EXEC" if refused.contains(key) => return Ok(()),
                // The connection ends behind its answer.
                "EXEC" if texts.get(key).is_some_and(|text| text == "leaves") => {
                    return self.say(&format!(
                        "= leaves for {rest}: text {key} of {}, connection {number} of {name}\n",
                        texts.len()
                    ));
                }
                "EXEC" => match texts.get(key) {
                    Some(text) => {
                        let of = texts.len();
                        self.say(&format!(
                            "= {text} for {rest}: text {key} of {of}, connection {number} of {name}\n"
                        ))?;
                    }
                    None => self.say("? no such text\n")?,
                },
                "VAR" if rest.contains("sticky") => {
                    known = "sticky".into();
                    self.say("+\n")?;
                }
                "VAR" | "KEEP" => {
                    known = rest.to_owned();
                    self.say("+\n")?;
                }
                "TELLME" => self.say(&format!("= {known}, connection {number}\n"))?,
                "RESET" if known == "sticky" => self.say("? cannot\n")?,
                "RESET" => {
                    known = "nothing".into();
                    thread::sleep(Duration::from_millis(20));
                    self.say("+\n")?;
                }
                "BYE" => return Ok(()),
                _ => self.say("? what\n")?,
            }
        }
    }
}
