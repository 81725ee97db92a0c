//! Connections of peers.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{Hello, Stream, Welcome, packet, stream::receive};
use crate::control::fleet::{identity::OwnIdentity, security::Security};

/// Time for TLS and the first words.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Handshakes at a time: whoever only connects does not keep peers out for longer than one takes.
const HANDSHAKES: usize = 256;
/// A refusal is told once in this time, by its reason.
const TELL: Duration = Duration::from_secs(60);
/// After a failure to accept, as when there is no descriptor.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes connections whose handshake is over, with the bytes that came behind it.
pub(in crate::control::fleet) trait Accept: Send + Sync + 'static {
    /// Takes a connection.
    fn accept(self: &Arc<Self>, hello: Hello, stream: Stream, early: Vec<u8>);
}

/// Accepts connections of peers for ever.
pub(in crate::control::fleet) async fn listen<A: Accept>(
    listener: TcpListener,
    who: Arc<OwnIdentity>,
    security: Arc<Security>,
    accept: Arc<A>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    let told = Arc::new(Mutex::new(HashMap::<String, Instant>::new()));
    loop {
        let (socket, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "fleet: cannot accept a connection");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let (who, security) = (Arc::clone(&who), Arc::clone(&security));
        let (accept, told) = (Arc::clone(&accept), Arc::clone(&told));
        tokio::spawn(async move {
            let shaken = timeout(HANDSHAKE, handshake(socket, &who, &security)).await;
            drop(place);
            match shaken {
                Ok(Ok((hello, stream, early))) => accept.accept(hello, stream, early),
                Ok(Err(error)) => tell(&told, from, &error.to_string()),
                Err(_) => tell(&told, from, "its handshake takes too long"),
            }
        });
    }
}

fn tell(told: &Mutex<HashMap<String, Instant>>, from: SocketAddr, why: &str) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    told.retain(|_, at| at.elapsed() < TELL);
    if told.len() < 100
        && told
            .insert(format!("{} {why}", from.ip()), Instant::now())
            .is_none()
    {
        tracing::warn!(%from, why, "fleet: a connection was refused");
    }
}

async fn handshake(
    socket: TcpStream,
    who: &OwnIdentity,
    security: &Security,
) -> io::Result<(Hello, Stream, Vec<u8>)> {
    socket.set_nodelay(true)?;
    let mut stream = match security.server() {
        None => Stream::Plain(socket),
        Some(config) => {
            let stream = TlsAcceptor::from(config).accept(socket).await?;
            Stream::Tls(Box::new(stream.into()))
        }
    };
    let (hello, early): (Hello, _) = receive(&mut stream).await?;
    let welcome = Welcome::of(who, hello.refusal(who));
    stream.write_all(&packet::write(&welcome)?).await?;
    stream.flush().await?;
    match welcome.refused {
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        None => Ok((hello, stream, early)),
    }
}
