//! One question to one endpoint, in bounded time and memory.

use std::{io, net::SocketAddr, time::Duration};

use proxima_wire::memcache::Discovery;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{
    DiscoveryFailure,
    connect::{Stream, connect, connect_by_tls},
    tls,
};
use crate::{
    members::discovery::{BadReply, LONGEST, NodeList, Reply, read},
    tls::Connector,
};

/// Time for a whole answer. A later one is a failure.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes that are read at a time.
const CHUNK: usize = 16 * 1024;

/// The list that is told at this address. Older engines know another question, which is asked if they do not
/// know the first. `security`: TLS with it; `None`: it speaks plainly.
pub(in crate::control) async fn ask(
    address: SocketAddr,
    security: Option<&Connector>,
) -> Result<NodeList, DiscoveryFailure> {
    let failed = |error: io::Error| DiscoveryFailure::Connect(error.to_string());
    let mut stream: Box<dyn Stream> = match security {
        Some(security) => connect_by_tls(address, security).await.map_err(failed)?,
        None => Box::new(connect(address).await.map_err(failed)?),
    };
    for question in Discovery::ALL {
        let mut received = Vec::new();
        let answer = timeout(TIMEOUT, exchange(&mut *stream, question, &mut received))
            .await
            .unwrap_or(Err(DiscoveryFailure::Late));
        match answer {
            Ok(Reply::List(list)) => return Ok(list),
            Ok(Reply::Nothing) => return Err(DiscoveryFailure::Nothing),
            Ok(Reply::Unknown) => {}
            // It closes, or waits for the rest of what it takes for a record.
            Err(DiscoveryFailure::Cut(_) | DiscoveryFailure::Late)
                if security.is_none() && received.is_empty() && tls::is_spoken(address).await =>
            {
                return Err(BadReply::Tls.into());
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(DiscoveryFailure::Unknown)
}

async fn exchange(
    stream: &mut dyn Stream,
    question: Discovery,
    received: &mut Vec<u8>,
) -> Result<Reply, DiscoveryFailure> {
    let cut = |error: io::Error| DiscoveryFailure::Cut(error.to_string());
    stream.write_all(question.line()).await.map_err(cut)?;
    loop {
        received.reserve(CHUNK);
        if stream.read_buf(received).await.map_err(cut)? == 0 {
            return Err(DiscoveryFailure::Cut("it is closed".to_owned()));
        }
        if let Some(reply) = read(question, received)? {
            return Ok(reply);
        }
        if received.len() > LONGEST + CHUNK {
            return Err(BadReply::TooLong.into());
        }
    }
}
