//! Checks that new clients are served after the attacks.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use crate::protocol::{Protocol, Statements};

/// A new client that is not served by then is not waited for any longer.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Time for one attempt. Where the listen queue is still full, the kernel repeats a connect after a second.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Time until a new client is served. `None` if it never is.
pub(super) fn until_served(address: SocketAddr, protocol: Protocol) -> Option<Duration> {
    let start = Instant::now();
    while start.elapsed() < GIVE_UP {
        if is_served(address, protocol).unwrap_or(false) {
            return Some(start.elapsed());
        }
        thread::sleep(Duration::from_millis(20));
    }
    None
}

fn is_served(address: SocketAddr, protocol: Protocol) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, ATTEMPT)?;
    stream.set_read_timeout(Some(ATTEMPT))?;
    let mut request = Vec::new();
    protocol.append_get(b"~newcomer", Statements::default(), &mut request);
    stream.write_all(&request)?;
    let mut reply = vec![0; protocol.miss().len()];
    stream.read_exact(&mut reply)?;
    Ok(reply == protocol.miss())
}
