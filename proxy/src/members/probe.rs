//! Asks an ejected member whether it is well, on a connection of its own: as a lane would, from the transform and the login
//! to a question that changes nothing.

use std::{io, time::Duration};

use proxima_wire::message::{Parse, Parsed};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

use super::Member;
use crate::{
    dialect::{Conversation, Login, Message, NO_UPGRADE, Transform},
    reactor::is_shortage,
};

/// Answers within the member's time-outs?
///
/// # Errors
/// It cannot be reached, is late, or answers nonsense.
pub async fn probe(member: &Member) -> io::Result<()> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let socket = member.socket.as_ref().ok_or(io::ErrorKind::AddrNotAvailable)?;
    if let Some(address) = socket.as_socket() {
        let stream = connect(member, || TcpStream::connect(address)).await?;
        return timeout(member.timeout, ask(stream, member)).await.map_err(late)?;
    }
    let path = socket.as_pathname().ok_or(io::ErrorKind::InvalidInput)?;
    let stream = connect(member, || UnixStream::connect(path)).await?;
    timeout(member.timeout, ask(stream, member)).await.map_err(late)?
}

/// Connects within the member's time-out. Where there is no descriptor for that, it is tried again and again: whether the member
/// is well is as unknown as before.
pub(super) async fn connect<S, F>(member: &Member, open: impl Fn() -> F) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
{
    const AGAIN: Duration = Duration::from_millis(100);
    loop {
        match timeout(member.connect_timeout, open()).await {
            Ok(Err(error)) if is_shortage(&error) => sleep(AGAIN).await,
            Ok(result) => return result,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// A plain conversation through whatever transform the dialect asks for.
struct Talk<S> {
    stream: S,
    transform: Option<Box<dyn Transform>>,
    /// Received and not yet understood.
    heard: Vec<u8>,
}

/// No greeting and no answer to a probe is longer.
const LONGEST: usize = 64 * 1024;

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Talk<S> {
    async fn say(&mut self, plain: &[u8]) -> io::Result<()> {
        let Some(transform) = &mut self.transform else {
            return self.stream.write_all(plain).await;
        };
        let mut wire = Vec::new();
        transform.seal(plain, &mut wire)?;
        self.stream.write_all(&wire).await
    }

    async fn hear(&mut self) -> io::Result<()> {
        let mut received = Vec::with_capacity(4096);
        if self.heard.len() > LONGEST || self.stream.read_buf(&mut received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(transform) = &mut self.transform else {
            self.heard.append(&mut received);
            return Ok(());
        };
        let mut wire = Vec::new();
        transform.open(&received, &mut self.heard, &mut wire)?;
        self.stream.write_all(&wire).await
    }
}

async fn ask<S>(stream: S, member: &Member) -> io::Result<()>
where
    S: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let dialect = member.dialect;
    let mut talk = Talk {
        stream,
        transform: dialect.transform(member.end()),
        heard: Vec::new(),
    };
    if talk.transform.is_some() {
        // The side that begins the transform's own conversation does so now.
        talk.say(&[]).await?;
    }
    let mut conversation = Conversation::default();
    loop {
        let mut said = Vec::new();
        let step = dialect.login(&mut conversation, &talk.heard, &mut said);
        talk.say(&said).await?;
        let used = match step {
            Login::More { used } | Login::Ready { used } | Login::Limited { used, .. } => used,
            Login::Upgrade { used } => {
                let transform = dialect.upgrade(member.end());
                if used != talk.heard.len() || talk.transform.is_some() || transform.is_none() {
                    return Err(io::Error::other(NO_UPGRADE));
                }
                talk.transform = transform;
                talk.say(&[]).await?;
                used
            }
            Login::Refused(text) => return Err(io::Error::other(text)),
        };
        talk.heard.drain(..used);
        match step {
            Login::Ready { .. } | Login::Limited { .. } => break,
            // Whose turn it is to speak, the codec knows.
            Login::Upgrade { .. } => {}
            _ if used == 0 || talk.heard.is_empty() => talk.hear().await?,
            _ => {}
        }
    }
    let (command, question) = dialect.probe();
    talk.say(question).await?;
    let mut parse = Parse::default();
    loop {
        match dialect.reply(&mut parse, command, &talk.heard) {
            Parsed::Head(Message::Push(push)) if talk.heard.len() as u64 >= push.len() => {
                talk.heard.drain(..push.len() as usize);
            }
            Parsed::Head(Message::Last(reply)) if reply.outcome.is_error() => {
                return Err(io::Error::other("it answers an error"));
            }
            Parsed::Head(Message::Last(_) | Message::Part(_)) => return Ok(()),
            Parsed::Head(Message::Push(_)) | Parsed::More => talk.hear().await?,
            Parsed::Bad(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
