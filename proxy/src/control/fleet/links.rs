//! Requests to the control threads of peers: one connection to each address, made when it is needed.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    identity::OwnIdentity,
    link::{Hello, Purpose, Stream, connect, packet, packet::Text},
    message::{Message, Reply},
    security::Security,
};

/// A message as it is sent, and the receiver of its answer.
struct SentMessage {
    text: Arc<Text>,
    /// The first version of the protocol that has the message.
    version: u16,
    tell: oneshot::Sender<io::Result<Reply>>,
}

/// Requests that wait for one address.
const QUEUE: usize = 1024;
/// Time for a connection with its handshake.
const CONNECT: Duration = Duration::from_millis(700);

/// The connections to all addresses.
pub(super) struct Links {
    who: Arc<OwnIdentity>,
    security: Arc<Security>,
    links: Mutex<HashMap<SocketAddr, mpsc::Sender<SentMessage>>>,
}

impl Links {
    pub(super) fn new(who: Arc<OwnIdentity>, security: Arc<Security>) -> Self {
        Self {
            who,
            security,
            links: Mutex::default(),
        }
    }

    /// Asks the peer at this address, for at most this time.
    pub(super) async fn ask(
        &self,
        address: SocketAddr,
        message: Message,
        limit: Duration,
    ) -> io::Result<Reply> {
        let text = packet::text(&message)?;
        self.ask_in_text(address, (text, message.version()), limit).await
    }

    /// Asks in a text that may be for many peers, with the version that its message needs.
    ///
    /// # Errors
    /// The peer does not answer in time, or its build does not know the message.
    pub(super) async fn ask_in_text(
        &self,
        address: SocketAddr,
        (text, version): (Arc<Text>, u16),
        limit: Duration,
    ) -> io::Result<Reply> {
        let (tell, answer) = oneshot::channel();
        let sender = self.link(address);
        let full = |_| io::Error::other("too many requests wait for it");
        sender
            .try_send(SentMessage { text, version, tell })
            .map_err(full)?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time");
        let lost = |_| io::Error::other("the connection has ended");
        timeout(limit, answer).await.map_err(late)?.map_err(lost)?
    }

    fn link(&self, address: SocketAddr) -> mpsc::Sender<SentMessage> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        // A link whose task has ended is made anew.
        links.retain(|_, link| !link.is_closed());
        let make = || {
            let (sender, asked) = mpsc::channel(QUEUE);
            let (who, security) = (Arc::clone(&self.who), Arc::clone(&self.security));
            tokio::spawn(serve(address, who, security, asked));
            sender
        };
        links.entry(address).or_insert_with(make).clone()
    }
}

/// One connection. It ends with the first failure, which all that wait are told.
async fn serve(
    address: SocketAddr,
    who: Arc<OwnIdentity>,
    security: Arc<Security>,
    mut asked: mpsc::Receiver<SentMessage>,
) {
    let opened = timeout(CONNECT, open(address, &who, &security)).await;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time");
    let why = match opened.map_err(late).and_then(|opened| opened) {
        Ok((stream, version)) => exchange(stream, version, &mut asked).await,
        Err(error) => error,
    };
    asked.close();
    while let Ok(SentMessage { tell, .. }) = asked.try_recv() {
        let _ = tell.send(Err(io::Error::new(why.kind(), why.to_string())));
    }
}

async fn open(address: SocketAddr, who: &OwnIdentity, security: &Security) -> io::Result<(Stream, u16)> {
    let hello = Hello::of(who, Purpose::Control);
    let (stream, _, version) = connect(address, security, &hello).await?;
    Ok((stream, version))
}

/// Sends requests and hands out the answers, which come in any order. `spoken`: the version of both ends.
async fn exchange(stream: Stream, spoken: u16, asked: &mut mpsc::Receiver<SentMessage>) -> io::Error {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut waiting: HashMap<u64, oneshot::Sender<io::Result<Reply>>> = HashMap::new();
    let (mut number, mut received) = (0, Vec::new());
    let why = loop {
        tokio::select! {
            next = asked.recv() => {
                let Some(SentMessage { text, version, tell }) = next else {
                    return io::Error::other("nobody asks any more");
                };
                if version > spoken {
                    // An older build would close the connection.
                    let _ = tell.send(Err(io::ErrorKind::Unsupported.into()));
                    continue;
                }
                number += 1;
                let bytes = match packet::write(&(number, &*text)) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        let _ = tell.send(Err(error));
                        continue;
                    }
                };
                waiting.retain(|_, tell| !tell.is_closed());
                waiting.insert(number, tell);
                if let Err(error) = writer.write_all(&bytes).await {
                    break error;
                }
            }
            read = reader.read_buf(&mut received) => {
                match read {
                    Ok(0) => break io::Error::new(io::ErrorKind::ConnectionReset, "it closed the connection"),
                    Ok(_) => {}
                    Err(error) => break error,
                }
                let answers = packet::take_all::<(u64, Reply)>(&mut received);
                match answers {
                    Ok(answers) => {
                        for (number, reply) in answers {
                            if let Some(tell) = waiting.remove(&number) {
                                let _ = tell.send(Ok(reply));
                            }
                        }
                    }
                    Err(error) => break error,
                }
            }
        }
    };
    for (_, tell) in waiting.drain() {
        let _ = tell.send(Err(io::Error::new(why.kind(), why.to_string())));
    }
    why
}
