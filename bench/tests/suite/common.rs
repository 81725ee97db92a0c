//! Runs the binary, and a memcached for it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

/// A command for the binary under test with these arguments.
pub(crate) fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proxima-bench"));
    command.args(arguments);
    command
}

/// Runs the binary to its end; returns its output and the JSON it printed, if it printed any.
pub(crate) fn run(arguments: &[&str]) -> (Output, Value) {
    let output = bench(arguments).output().expect("the binary starts");
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output, json)
}

/// A memcached that ends with the test.
pub(crate) struct Memcached {
    child: Child,
    /// Where it listens on 127.0.0.1.
    pub(crate) port: u16,
}

/// A port on which no program listens, below those of outgoing connections, so that no client takes it while
/// a server is down.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16;
    loop {
        let number = start.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = 12_000 + number % 20_000;
        // A listener would show it as well, but might outlive its closing: a test on another thread that
        // starts a process at this moment inherits it.
        if TcpStream::connect(("127.0.0.1", port)).is_err() {
            return port;
        }
    }
}

impl Memcached {
    pub(crate) fn start() -> Self {
        // A port that was free may be another program's by the time memcached takes it.
        let started = (0..10).find_map(|_| Self::try_on(free_port()).ok());
        started.expect("one of ten ports that were free still is")
    }

    /// Starts on this port. The error says how memcached ended: another program has taken the port.
    pub(crate) fn try_on(port: u16) -> Result<Self, ExitStatus> {
        let child = Command::new("memcached")
            .args([
                "-l",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-U",
                "0",
                "-t",
                "1",
                "-u",
                "root",
            ])
            .stderr(Stdio::null())
            .spawn()
            .expect("memcached is installed");
        let mut server = Self { child, port };
        while server.answers().is_none() {
            if let Some(ended) = server.child.try_wait().expect("it can be asked") {
                return Err(ended);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Whether it is this process that answers on the port, and not another program.
    fn answers(&self) -> Option<()> {
        let mut stream = self.connect().ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        stream.write_all(b"stats\r\n").ok()?;
        let expected = format!("STAT pid {}\r\n", self.pid());
        let mut said = vec![0; expected.len()];
        stream.read_exact(&mut said).ok()?;
        (said == expected.as_bytes()).then_some(())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port))
    }

    /// Stores these bytes past the binary.
    pub(crate) fn set(&self, key: &str, value: &[u8]) {
        let mut stream = self.connect().expect("memcached accepts");
        stream
            .write_all(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes())
            .expect("it reads");
        stream.write_all(&[value, b"\r\n"].concat()).expect("it reads");
        let mut reply = [0; 8];
        stream.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"STORED\r\n");
    }

    /// One number of the server's `stats`.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let mut stream = self.connect().expect("memcached accepts");
        stream.write_all(b"stats\r\nquit\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.and_then(|value| value.parse().ok())
            .expect("it has this figure")
    }

    /// Returns when a run is well under way, that is when clients have read this many keys. A fixed time
    /// would not do, as a run on a busy machine may not have begun after a second.
    pub(crate) fn wait_for_reads(&self, number: u64) {
        while self.stat("cmd_get") < number {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Empties the server.
    pub(crate) fn flush(&self) {
        let mut stream = self.connect().expect("memcached accepts");
        stream.write_all(b"flush_all\r\n").expect("it reads");
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"OK\r\n");
    }

    /// Sends a signal, given by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.pid().to_string()])
            .status();
        assert!(status.expect("kill starts").success());
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        self.stop();
    }
}
