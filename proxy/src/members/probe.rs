//! Asks an ejected member whether it is well, on a connection of its own.

use std::io;

use proxima_wire::message::Parsed;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::Member;
use crate::dialect::Message;

/// Answers within the member's time-outs?
///
/// # Errors
/// It cannot be reached, is late, or answers nonsense.
pub async fn probe(member: &Member) -> io::Result<()> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    if let Some(address) = member.socket.as_socket() {
        let stream = timeout(member.connect_timeout, TcpStream::connect(address)).await.map_err(late)??;
        return timeout(member.timeout, ask(stream, member)).await.map_err(late)?;
    }
    let path = member.socket.as_pathname().ok_or(io::ErrorKind::InvalidInput)?;
    let stream = timeout(member.connect_timeout, UnixStream::connect(path)).await.map_err(late)??;
    timeout(member.timeout, ask(stream, member)).await.map_err(late)?
}

async fn ask<S>(mut stream: S, member: &Member) -> io::Result<()>
where
    S: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let (command, question) = member.dialect.probe();
    stream.write_all(question).await?;
    let mut answer = Vec::with_capacity(256);
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match member.dialect.reply(command, &answer) {
            Parsed::Head(Message::Last(reply)) if reply.outcome.is_error() => {
                return Err(io::Error::other("it answers an error"));
            }
            Parsed::Head(_) => return Ok(()),
            Parsed::More => {}
            Parsed::Bad(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
