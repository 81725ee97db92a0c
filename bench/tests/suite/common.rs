//! Running the binary, and a memcached for it.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

/// The binary under test with these arguments.
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

impl Memcached {
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .expect("a free port")
            .local_addr()
            .expect("bound")
            .port();
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
        let server = Self { child, port };
        while server.connect().is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        server
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

    /// Stores bytes of the test's own choice.
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

    /// Sends a signal by name.
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
