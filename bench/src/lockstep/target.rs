//! The process that is measured, with the servers behind it.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    backends::Backends,
    options::{Case, Subject},
};
use crate::{
    contender::{Distribution, MOST_DEDICATED, Site},
    process::{Child, Placement, free_port, listen_anywhere, move_to},
    protocol::Protocol,
    tls::{Connector, Pair},
};

/// A proxy (or server) has to answer within this time after its start.
const START: Duration = Duration::from_secs(30);

/// The target, which was started here or attached to.
pub(crate) struct Target {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The servers behind it; none where it is a server itself.
    pub(crate) backends: Option<Backends>,
    /// How clients connect by TLS; none: they speak plainly.
    pub(crate) tls: Option<Connector>,
    process: Process,
}

enum Process {
    Started(Child),
    Attached(u32),
}

impl Target {
    /// Starts or moves the process, opens the servers behind it and returns once it answers.
    pub(crate) fn start(case: &Case, cpu: usize, directory: &Path) -> Result<Self> {
        let listeners = match &case.subject {
            Subject::Start { contender, .. } if contender.is_server() => Vec::new(),
            Subject::Start { .. } => (0..case.shape.servers)
                .map(|_| listen_anywhere())
                .collect::<Result<_>>()?,
            Subject::Attach { backends, .. } => {
                backends.iter().copied().map(listen_on).collect::<Result<_>>()?
            }
        };
        let ports = listeners
            .iter()
            .map(|listener| Ok(listener.local_addr()?.port()))
            .collect::<Result<Vec<_>>>()?;
        let backends = if listeners.is_empty() {
            None
        } else {
            Some(Backends::new(
                listeners,
                case.shape.protocol,
                case.shape.value_size,
            )?)
        };
        let pair = Pair::make(directory)?;
        let tls = Connector::new(case.shape.tls, case.shape.resume, &pair)?;
        let (process, address) = match &case.subject {
            Subject::Start { contender, program } => {
                let port = free_port()?;
                let site = Site {
                    directory,
                    port,
                    servers: &ports,
                    spread: case.shape.spread,
                    distribution: Distribution::default(),
                    protocol: case.shape.protocol,
                    value_size: case.shape.value_size,
                    near: case.shape.near,
                    galera: case.shape.galera,
                    dedicated: Some(MOST_DEDICATED),
                    most_clients: contender.most_clients(),
                    tls: tls.as_ref().map(|_| &pair),
                };
                let launch = contender.launch(program, &site)?;
                let child = Child::start(&launch, &Placement::Behind(cpu), directory)?;
                (
                    Process::Started(child),
                    SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
                )
            }
            Subject::Attach { .. } if tls.is_some() => {
                bail!("a process that runs is measured without TLS: its certificate is not known")
            }
            Subject::Attach { pid, address, .. } => {
                move_to(cpu, *pid)?;
                (Process::Attached(*pid), *address)
            }
        };
        let mut target = Self {
            address,
            backends,
            tls,
            process,
        };
        target.wait_until_it_answers(case.shape.protocol)?;
        Ok(target)
    }

    /// The process whose cost is measured.
    pub(crate) fn pid(&self) -> u32 {
        match &self.process {
            Process::Started(child) => child.pid(),
            Process::Attached(pid) => *pid,
        }
    }

    /// Fails if the process has ended by itself.
    pub(crate) fn check_running(&mut self) -> Result<()> {
        match &mut self.process {
            Process::Started(child) => child.check_running(),
            Process::Attached(pid) => {
                ensure!(
                    Path::new(&format!("/proc/{pid}")).exists(),
                    "process {pid} has ended"
                );
                Ok(())
            }
        }
    }

    /// Sends gets until one is answered without an error, and meanwhile serves the proxy's requests to its
    /// servers.
    fn wait_until_it_answers(&mut self, protocol: Protocol) -> Result<()> {
        let deadline = Instant::now() + START;
        let mut last = String::from("it accepts no connection");
        while Instant::now() < deadline {
            self.check_running()?;
            match self.ask(protocol) {
                Ok(answer) if protocol.is_ready(&answer) => return Ok(()),
                Ok(answer) => last = format!("it answers '{}'", answer.escape_ascii()),
                Err(error) => last = error.to_string(),
            }
            self.serve()?;
        }
        bail!("not ready {START:?} after its start: {last}")
    }

    /// One get on a connection of its own; whatever came within a moment.
    fn ask(&mut self, protocol: Protocol) -> Result<Vec<u8>> {
        let stream = TcpStream::connect_timeout(&self.address, START)?;
        stream.set_read_timeout(Some(START))?;
        let tls = self.tls.clone();
        let mut streams = protocol.enter(vec![stream], tls.as_ref(), &mut |_| self.serve())?;
        let (mut stream, statements) = streams.pop().context("no client was made")?;
        stream.socket().set_read_timeout(Some(Duration::from_millis(5)))?;
        let mut request = Vec::new();
        protocol.append_get(b"proxima-bench", statements, &mut request);
        stream.write_all(&request)?;
        let mut answer = Vec::new();
        for _ in 0..300 {
            self.serve()?;
            let mut part = [0; 16 * 1024];
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(length) => answer.extend_from_slice(&part[..length]),
                // The read timed out without bytes.
                Err(_) => continue,
            }
            if protocol.is_ready(&answer) || protocol.is_refusal(&answer) {
                break;
            }
        }
        Ok(answer)
    }

    fn serve(&mut self) -> Result<()> {
        const MOMENT: Duration = Duration::from_millis(5);
        if let Some(backends) = &mut self.backends {
            return backends.serve(MOMENT);
        }
        thread::sleep(MOMENT);
        Ok(())
    }
}

fn listen_on(port: u16) -> Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener =
        listener.with_context(|| format!("cannot listen on 127.0.0.1:{port} for the attached proxy"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
