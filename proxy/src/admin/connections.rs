//! Connections of operators and load balancers. Their number is bounded, as they take descriptors of the same
//! process as clients do. One that asks nothing, or does not take its answer, gives way to a new one, so that
//! none keeps the others out. Some descriptors are kept for them.

use std::{
    fs::File,
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::Router;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use tokio_rustls::TlsAcceptor;

use crate::{reactor::is_shortage, tls::Acceptor};

/// The longest head of a request, and what is sent of an answer at a time; in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// Connections at a time: every tool of an operator needs one, for as long as an answer takes.
const MOST: usize = 64;
/// Time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for a request's head.
const HEAD: Duration = Duration::from_secs(10);
/// Time for an answer to be taken, unless it [lasts](Lasts); a reload may wait for names.
const ALL: Duration = Duration::from_secs(60);
/// Time for the rest of an answer that has lasted.
const GRACE: Duration = Duration::from_secs(2);
/// Descriptors of one connection: itself, and a file that its answer reads.
const EACH: usize = 2;
/// Descriptors that are kept, enough for two connections at a time.
const RESERVE: usize = 2 * EACH;
/// Time until the next attempt to accept.
const AGAIN: Duration = Duration::from_millis(50);

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers one request on each connection, for ever. Those who may not ask are closed.
pub(super) async fn answer(listener: TcpListener, router: Router, may: impl Fn(IpAddr) -> bool) {
    serve(listener, may, BUSY, |stream, works| {
        let (router, from) = (router.clone(), Asker::of(&stream));
        // A broken connection is the operator's own loss.
        one(stream, from, router, works)
    })
    .await;
}

/// The same by TLS, for everybody.
pub(super) async fn answer_by_tls(listener: TcpListener, tls: Arc<Acceptor>, router: Router) {
    // A client that speaks TLS would not understand plain words that there is no room.
    serve(
        listener,
        |_| true,
        b"",
        |stream, works| {
            let (tls, router, from) = (Arc::clone(&tls), router.clone(), Asker::of(&stream));
            async move {
                let handshake = TlsAcceptor::from(tls.config()).accept(stream);
                if let Ok(Ok(stream)) = timeout(HANDSHAKE, handshake).await {
                    one(stream, from, router, works).await;
                }
            }
        },
    )
    .await;
}

/// The asker of a request, whom handlers find among its extensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    /// Somebody on this host.
    pub(super) is_here: bool,
}

impl Asker {
    fn of(stream: &TcpStream) -> Self {
        let address = stream.peer_addr().map(|address| address.ip().to_canonical());
        Self {
            is_here: address.is_ok_and(|address| address.is_loopback()),
        }
    }
}

/// Is true while a connection is not to give way to a new one.
pub(super) type Works = Arc<AtomicBool>;

/// Serves connections by `each`, for ever. Those who may not ask are closed, and one for which none of the
/// others gives way is told `busy`.
pub(super) async fn serve<S: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    may: impl Fn(IpAddr) -> bool,
    busy: &[u8],
    mut each: impl FnMut(TcpStream, Works) -> S,
) {
    let mut crowd = Crowd::default();
    let mut reserve = Reserve::default();
    reserve.fill();
    loop {
        tokio::select! {
            Some(_) = crowd.tasks.join_next() => {
                crowd.seats.retain(|seat| !seat.task.is_finished());
                // The descriptors are taken back at once, before another part of the process takes them.
                reserve.fill();
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) if may(from.ip()) => {
                    if crowd.has_room() {
                        let works = Works::default();
                        crowd.seat(each(stream, Arc::clone(&works)), works);
                    } else {
                        // Best effort: the connection is closed in any case.
                        let _ = stream.try_write(busy);
                    }
                }
                Ok(_) => {}
                Err(error) if is_shortage(&error) => {
                    if !reserve.spend() && !crowd.make_room() {
                        sleep(AGAIN).await;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(AGAIN).await,
            },
        }
    }
}

/// Descriptors that are given back to the system when it has none left for an operator, and taken again
/// afterwards.
#[derive(Default)]
struct Reserve(Vec<File>);

impl Reserve {
    fn fill(&mut self) {
        while self.0.len() < RESERVE
            && let Ok(file) = File::open("/dev/null")
        {
            self.0.push(file);
        }
    }

    /// Gives back what a connection takes. Returns false if nothing is left to give.
    fn spend(&mut self) -> bool {
        let some = !self.0.is_empty();
        self.0.truncate(self.0.len().saturating_sub(EACH));
        some
    }
}

/// The open connections.
#[derive(Default)]
struct Crowd {
    tasks: JoinSet<()>,
    /// The order in which they came.
    seats: Vec<Seat>,
}

struct Seat {
    task: AbortHandle,
    /// The request has come and is being answered.
    works: Works,
}

impl Crowd {
    /// Whether there is a seat for one more, perhaps that of one that gives way.
    fn has_room(&mut self) -> bool {
        self.seats.len() < MOST || self.make_room()
    }

    fn seat(&mut self, served: impl Future<Output = ()> + Send + 'static, works: Works) {
        let task = self.tasks.spawn(served);
        self.seats.push(Seat { task, works });
    }

    /// Closes the oldest connection that has asked nothing yet, or has its answer. Returns false if all are
    /// being answered.
    fn make_room(&mut self) -> bool {
        let waits = |seat: &Seat| !seat.works.load(Relaxed) && !seat.task.is_finished();
        let Some(oldest) = self.seats.iter().position(waits) else {
            return false;
        };
        self.seats.remove(oldest).task.abort();
        true
    }
}

/// Whether an answer goes on for as long as its asker takes it, as a stream does. Handlers find it among the
/// extensions of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Lasts(Arc<Course>);

/// The course of an answer.
#[derive(Debug, Default)]
struct Course {
    has_begun: AtomicBool,
    ended: Notify,
}

impl Lasts {
    /// The answer has no end.
    pub(super) fn begin(&self) {
        self.0.has_begun.store(true, Relaxed);
    }

    /// It has one after all: its asker has [`GRACE`] to take the rest.
    pub(super) fn end(&self) {
        self.0.ended.notify_one();
    }

    /// Returns when the time for the answer is over.
    async fn over(&self) {
        let limit = async {
            sleep(ALL).await;
            if self.0.has_begun.load(Relaxed) {
                std::future::pending().await
            }
        };
        tokio::select! {
            () = limit => {}
            () = self.0.ended.notified() => sleep(GRACE).await,
        }
    }
}

async fn one<S>(stream: S, from: Asker, router: Router, works: Works)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let router = TowerToHyperService::new(router);
    let lasts = Lasts::default();
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(from);
        request.extensions_mut().insert(lasts.clone());
        let (answer, works) = (router.call(request), Arc::clone(&works));
        works.store(true, Relaxed);
        async move {
            let answer = answer.await;
            works.store(false, Relaxed);
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = connection => {}
        () = lasts.over() => {}
    }
}
