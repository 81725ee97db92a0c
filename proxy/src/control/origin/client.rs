//! The client of one origin: its connections, and who may use one.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::body::Body;
use hyper::{
    Request,
    client::conn::http1::{self, SendRequest},
    header::{ACCEPT_ENCODING, HOST, HeaderValue, IF_NONE_MATCH, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use proxima_wire::message::Outcome;
use tokio::{net::TcpStream, sync::Semaphore, task::AbortHandle, time::timeout};

use super::{
    failure::{LONGEST_HEAD, TOO_MANY_FIELDS, broken, failed},
    receive::receive,
};
use crate::{
    control::surroundings::{discovery::Resolve, dns::System},
    near::{Failure, Fetch, HttpOrigin, OriginReply},
};

/// The most fetches that wait for their turn. Further ones are answered with an error at once.
const WAITING: usize = 4096;
/// An idle connection is closed after this time, so that few are used that the origin closes at that moment.
const IDLE: Duration = Duration::from_secs(30);

/// The client of one origin.
pub(super) struct Client {
    origin: Arc<HttpOrigin>,
    /// One for each request that may be under way.
    places: Semaphore,
    /// Fetches that are under way or wait.
    begun: AtomicUsize,
    /// Connections without a request, and since when.
    idle: Mutex<Vec<(Connection, Instant)>>,
    /// How the system looks up hosts.
    system: Mutex<System>,
}

/// A connection to the origin. It ends when it is dropped, whatever is under way on it.
pub(super) struct Connection {
    sender: SendRequest<Body>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One fetch that is counted for as long as it lives.
struct FetchCount<'a>(&'a AtomicUsize);

impl Drop for FetchCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Client {
    pub(super) fn new(origin: Arc<HttpOrigin>) -> Self {
        Self {
            places: Semaphore::new(origin.requests),
            begun: AtomicUsize::new(0),
            idle: Mutex::default(),
            system: Mutex::default(),
            origin,
        }
    }

    pub(super) fn is_of(&self, origin: &HttpOrigin) -> bool {
        *self.origin == *origin
    }

    /// Fetches a value within the origin's time.
    pub(super) async fn fetch(&self, fetch: &Fetch) -> OriginReply {
        let before = self.begun.fetch_add(1, Relaxed);
        let _counted = FetchCount(&self.begun);
        let is_asked = AtomicBool::new(false);
        let fetched = match before < self.origin.requests + WAITING {
            true => timeout(self.origin.timeout, self.ask(fetch, &is_asked)).await,
            false => Ok(Err(failed(Outcome::Overloaded, "too many requests wait for it"))),
        };
        let late = |_| {
            let text = format!("no answer within {:?}", self.origin.timeout);
            Err(failed(Outcome::Timeout, text))
        };
        fetched.unwrap_or_else(late).unwrap_or_else(|failure| {
            let text = format!("origin {}: {}", self.origin.url.authority(), failure.text);
            OriginReply::Failed(Failure {
                text,
                is_origins: is_asked.load(Relaxed),
                ..failure
            })
        })
    }

    /// Waits for its turn, and asks.
    async fn ask(&self, fetch: &Fetch, is_asked: &AtomicBool) -> Result<OriginReply, Failure> {
        let request = self.request(fetch)?;
        let closed = |_| failed(Outcome::LocalError, "the proxy ends");
        let _place = self.places.acquire().await.map_err(closed)?;
        is_asked.store(true, Relaxed);
        let began = Instant::now();
        if let Some(mut kept) = self.idle_connection().await {
            match kept
                .sender
                .send_request(request.clone().map(|()| Body::empty()))
                .await
            {
                Ok(reply) => return self.take(kept, fetch, reply, began).await,
                // The origin has closed a connection that it had kept, and has not answered. To read again
                // harms nobody.
                Err(error) if is_closed(&error) => {}
                Err(error) => return Err(broken(&error)),
            }
        }
        let mut made = self.connect().await?;
        let reply = made.sender.send_request(request.map(|()| Body::empty())).await;
        self.take(made, fetch, reply.map_err(|error| broken(&error))?, began)
            .await
    }

    async fn take(
        &self,
        connection: Connection,
        fetch: &Fetch,
        reply: hyper::Response<hyper::body::Incoming>,
        began: Instant,
    ) -> Result<OriginReply, Failure> {
        let fields = reply.headers().iter();
        let bytes: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        // What has come at once may be more than the client of HTTP would wait for.
        if bytes > LONGEST_HEAD {
            return Err(failed(Outcome::RemoteError, TOO_MANY_FIELDS));
        }
        let (fetched, is_reusable) = receive(fetch, reply, began.elapsed()).await?;
        if is_reusable {
            self.keep(connection);
        }
        Ok(fetched)
    }

    fn request(&self, fetch: &Fetch) -> Result<Request<()>, Failure> {
        let mut request = Request::get(&fetch.target)
            .header(HOST, self.origin.url.authority())
            .header(USER_AGENT, "proxima")
            .header(ACCEPT_ENCODING, "identity");
        if let Some(validator) = &fetch.validator
            && let Ok(tag) = HeaderValue::from_bytes(&validator.etag)
        {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let unfit = |_| failed(Outcome::ClientError, "this key makes no URL");
        request.body(()).map_err(unfit)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was used last, if it is still good.
    async fn idle_connection(&self) -> Option<Connection> {
        loop {
            let (mut connection, _) = {
                let mut idle = self.idle();
                idle.retain(|(connection, since)| !connection.sender.is_closed() && since.elapsed() < IDLE);
                idle.pop()?
            };
            if connection.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        self.idle().push((connection, Instant::now()));
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let unreachable = |error: io::Error| failed(Outcome::ConnectError, format!("no connection: {error}"));
        let addresses = self.addresses().await?;
        let stream = TcpStream::connect(&*addresses).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let mut builder = http1::Builder::new();
        let made = builder
            .max_buf_size(LONGEST_HEAD)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| broken(&error))?;
        let task = tokio::spawn(async move {
            // Its end is seen by whoever waits for a reply.
            let _ = connection.await;
        });
        let task = task.abort_handle();
        Ok(Connection { sender, task })
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let (host, port) = (&*self.origin.url.host, self.origin.url.port);
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![(ip, port).into()]);
        }
        let finder = self.system.lock().unwrap_or_else(PoisonError::into_inner).read();
        let lost = |why: String| failed(Outcome::ConnectError, format!("its name does not resolve: {why}"));
        match finder.resolve(host).await.map_err(lost)? {
            Some(found) => Ok(found.into_iter().map(|ip| (ip, port).into()).collect()),
            None => Err(lost("it has no address".to_owned())),
        }
    }
}

/// Has the connection ended before anything of the reply came?
fn is_closed(error: &hyper::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let is_cut =
        |cause: &std::io::Error| matches!(cause.kind(), BrokenPipe | ConnectionAborted | ConnectionReset);
    error.is_canceled() || error.is_closed() || error.is_incomplete_message() || cause.is_some_and(is_cut)
}
