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
    channel::{Hello, Purpose, Stream, connect, packet, packet::Text},
    message::{Message, Reply},
    security::Security,
    who::Who,
};

/// A message as it is sent, and whom to give the answer.
type Asked = (Arc<Text>, oneshot::Sender<io::Result<Reply>>);

/// Requests that wait for one address.
const QUEUE: usize = 1024;
/// Time for a connection with its handshake.
const CONNECT: Duration = Duration::from_millis(700);

/// The connections to all addresses.
pub(super) struct Links {
    who: Arc<Who>,
    security: Arc<Security>,
    links: Mutex<HashMap<SocketAddr, mpsc::Sender<Asked>>>,
}

impl Links {
    pub(super) fn new(who: Arc<Who>, security: Arc<Security>) -> Self {
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
        self.ask_in_text(address, packet::text(&message)?, limit).await
    }

    /// Asks in a text that may be for many peers.
    pub(super) async fn ask_in_text(
        &self,
        address: SocketAddr,
        message: Arc<Text>,
        limit: Duration,
    ) -> io::Result<Reply> {
        let (tell, answer) = oneshot::channel();
        let sender = self.link(address);
        let full = |_| io::Error::other("too many requests wait for it");
        sender.try_send((message, tell)).map_err(full)?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time");
        let lost = |_| io::Error::other("the connection has ended");
        timeout(limit, answer).await.map_err(late)?.map_err(lost)?
    }

    fn link(&self, address: SocketAddr) -> mpsc::Sender<Asked> {
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
    who: Arc<Who>,
    security: Arc<Security>,
    mut asked: mpsc::Receiver<Asked>,
) {
    let opened = timeout(CONNECT, open(address, &who, &security)).await;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time");
    let why = match opened.map_err(late).and_then(|opened| opened) {
        Ok(stream) => exchange(stream, &mut asked).await,
        Err(error) => error,
    };
    asked.close();
    while let Ok((_, tell)) = asked.try_recv() {
        let _ = tell.send(Err(io::Error::new(why.kind(), why.to_string())));
    }
}

async fn open(address: SocketAddr, who: &Who, security: &Security) -> io::Result<Stream> {
    let hello = Hello::of(who, Purpose::Control);
    let (stream, _) = connect(address, security, &hello).await?;
    Ok(stream)
}

/// Sends requests and hands out the answers, which come in any order.
async fn exchange(stream: Stream, asked: &mut mpsc::Receiver<Asked>) -> io::Error {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut waiting: HashMap<u64, oneshot::Sender<io::Result<Reply>>> = HashMap::new();
    let (mut number, mut received) = (0, Vec::new());
    let why = loop {
        tokio::select! {
            next = asked.recv() => {
                let Some((message, tell)) = next else {
                    return io::Error::other("nobody asks any more");
                };
                number += 1;
                let bytes = match packet::write(&(number, &*message)) {
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
