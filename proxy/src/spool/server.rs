//! A server to which deletes are sent again.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    time::Duration,
};

use rustls::{ClientConnection, StreamOwned};

use super::line::ServerName;
use crate::tls::Connector;

/// Time for a connection, and for each reply.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Deletes that are under way at a time: few enough that others of the server's clients do not wait for them.
const BATCH: usize = 100;
/// The longest reply.
const LONGEST: u64 = 1_024;

/// A connection.
pub(super) struct Server {
    stream: BufReader<Box<dyn Stream>>,
    line: Vec<u8>,
}

/// How far some deletes have got.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The server has answered them.
    pub(super) answered: usize,
    /// Deletes that the server refuses from any client.
    pub(super) refused: usize,
    /// Why it went no further.
    pub(super) failure: Option<io::Error>,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl Server {
    /// Connects, by TLS or plainly, and sees that the server answers.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn connect(name: &ServerName, tls: Option<&Connector>) -> io::Result<Self> {
        let mut server = Self {
            stream: BufReader::new(connect(name, tls)?),
            line: Vec::new(),
        };
        server.stream.get_mut().write_all(b"version\r\n")?;
        match server.reply()? {
            line if line.starts_with(b"VERSION ") => Ok(server),
            line => Err(io::Error::other(format!("it answers {}", line.escape_ascii()))),
        }
    }

    /// Deletes these keys in their order.
    pub(super) fn delete(&mut self, keys: &[&str]) -> Progress {
        let mut progress = Progress::default();
        for batch in keys.chunks(BATCH) {
            if let Err(error) = self.batch(batch, &mut progress) {
                progress.failure = Some(error);
                break;
            }
        }
        progress
    }

    fn batch(&mut self, keys: &[&str], progress: &mut Progress) -> io::Result<()> {
        let mut requests = Vec::new();
        for key in keys {
            requests.extend_from_slice(b"delete ");
            requests.extend_from_slice(key.as_bytes());
            requests.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&requests)?;
        for _ in keys {
            match self.reply()? {
                b"DELETED" | b"NOT_FOUND" => {}
                line if line.starts_with(b"CLIENT_ERROR") => progress.refused += 1,
                line => return Err(io::Error::other(format!("it answers {}", line.escape_ascii()))),
            }
            progress.answered += 1;
        }
        Ok(())
    }

    fn reply(&mut self) -> io::Result<&[u8]> {
        self.line.clear();
        self.stream
            .by_ref()
            .take(LONGEST)
            .read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\n") {
            Some(line) => Ok(line.trim_ascii_end()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn connect(name: &ServerName, tls: Option<&Connector>) -> io::Result<Box<dyn Stream>> {
    if name.port == 0 {
        let stream = UnixStream::connect(&name.host)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        return over(stream, tls);
    }
    let mut last = io::ErrorKind::NotFound.into();
    for address in (name.host.as_str(), name.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                return over(stream, tls);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The bytes of a connection, by TLS or plain. The handshake takes place with the first of them.
fn over(stream: impl Stream + 'static, tls: Option<&Connector>) -> io::Result<Box<dyn Stream>> {
    let Some(tls) = tls else {
        return Ok(Box::new(stream));
    };
    let session = ClientConnection::new(tls.config(), tls.name()).map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(session, stream)))
}
