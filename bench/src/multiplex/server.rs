//! The server of a run, a real MariaDB, and a connection that asks it how it is.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::visitors;
use crate::{
    contender::{self, Contender},
    mysql::{
        self, packet,
        request::append_query,
        rows::Rows,
        statement_reply::{Contents, of_statement, text},
    },
    net::{connect, wait_for_words},
    process::{Child, Placement, free_port},
    tls::Stream,
};

/// Time to start, and to see the end of all connections.
const STUCK: Duration = Duration::from_secs(30);
/// Time between two looks.
const BETWEEN: Duration = Duration::from_millis(20);

/// The server.
pub(super) struct Server {
    process: Child,
    /// The port on 127.0.0.1 where it listens.
    pub(super) port: u16,
    control: Stream,
}

impl Server {
    /// Starts one with the table of the run, whose files are in this folder.
    pub(super) fn start(directory: &Path) -> Result<Self> {
        let program = Contender::Mariadb.program(&[])?;
        let port = free_port()?;
        let launch = contender::mariadb(&program, port, directory)?;
        let mut process = Child::start(&launch, &Placement::Inherited, directory)?;
        let deadline = Instant::now() + STUCK;
        let control = loop {
            process.check_running()?;
            match enter(port) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => thread::sleep(BETWEEN),
            }
        };
        let mut server = Self {
            process,
            port,
            control,
        };
        server.run(visitors::CREATE)?;
        server.run(visitors::FILL)?;
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until no connection is left but this one.
    pub(super) fn wait_until_alone(&mut self) -> Result<()> {
        let deadline = Instant::now() + STUCK;
        while self.status("Threads_connected")? > 1 {
            ensure!(Instant::now() < deadline, "connections do not end");
            thread::sleep(BETWEEN);
        }
        Ok(())
    }

    /// Begins to count the connections at a time anew.
    pub(super) fn forget_most_connections(&mut self) -> Result<()> {
        self.run("FLUSH STATUS")
    }

    /// The most connections at a time since they were forgotten, without this one.
    pub(super) fn most_connections(&mut self) -> Result<u64> {
        Ok(self.status("Max_used_connections")? - 1)
    }

    /// Updates so far.
    pub(super) fn updates(&mut self) -> Result<u64> {
        self.ask(visitors::SUM, |row| Ok(std::str::from_utf8(text(row)?)?.parse()?))
    }

    fn status(&mut self, name: &str) -> Result<u64> {
        self.ask(&format!("SHOW GLOBAL STATUS LIKE '{name}'"), |row| {
            let (_, value) = packet::text(row).context("a row without a name")?;
            Ok(std::str::from_utf8(text(value)?)?.parse()?)
        })
    }

    fn run(&mut self, statement: &str) -> Result<()> {
        self.exchange(statement, |contents| match contents {
            Contents::Done => Ok(()),
            other => bail!("'{statement}' has the answer {other:?}"),
        })
    }

    fn ask<T>(&mut self, statement: &str, read: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        self.exchange(statement, |contents| match contents {
            Contents::Rows(Rows { first: Some(row), .. }) => read(row),
            other => bail!("'{statement}' has the answer {other:?}"),
        })
    }

    fn exchange<T>(&mut self, statement: &str, read: impl Fn(Contents<'_>) -> Result<T>) -> Result<T> {
        let (mut words, mut said, mut part) = (Vec::new(), Vec::new(), [0; 4_096]);
        append_query(statement.as_bytes(), &mut words);
        self.control.write_all(&words)?;
        loop {
            let length = self.control.read(&mut part)?;
            ensure!(length > 0, "the server has closed the connection");
            said.extend_from_slice(&part[..length]);
            if let Some(reply) = of_statement(&said, false)? {
                return read(reply.contents);
            }
        }
    }
}

fn enter(port: u16) -> Result<Stream> {
    let socket = connect(SocketAddr::from(([127, 0, 0, 1], port)))?;
    socket.set_read_timeout(Some(STUCK))?;
    let mut stream = Stream::new(socket, None)?;
    mysql::log_in(vec![&mut stream], false, None, &mut wait_for_words)?;
    Ok(stream)
}
