//! The command line's requests to the admin port of a running proxy.

use std::{future::poll_fn, io, path::PathBuf, pin::Pin, time::Duration};

use axum::body::{Body, Bytes, to_bytes};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    client::conn::http1,
    header::{AUTHORIZATION, HOST},
};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::{self, Runtime},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{Answer, args::AdminPort};
use crate::{
    config::{
        file,
        schema::{ClientTls, Verify},
    },
    tls::Certificates,
};

/// Time for the answer of the admin port.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// The most bytes of an answer.
const MOST: usize = 16 << 20;

/// A proxy does not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("nobody answers at the admin port {0}: {1}. `--admin` names another one")]
    Unreachable(String, std::io::Error),
    #[error("the admin port {0} does not answer as one: {1}")]
    Http(String, hyper::Error),
    #[error("the connection to the admin port {0} is lost: {1}")]
    Lost(String, hyper::Error),
    #[error("the admin port {0} does not answer in time")]
    Late(String),
    #[error("{0}")]
    Refused(String),
}

/// An admin port.
pub(super) struct Admin {
    address: String,
    /// TLS with it. `None` for plain text.
    tls: Option<ClientTls>,
    /// The file whose first line is the token for what changes something.
    token: Option<PathBuf>,
}

impl Admin {
    /// The one at the address of the command line, which may stand behind `https://`.
    pub(super) fn of(at: AdminPort) -> Self {
        let AdminPort {
            admin: address,
            admin_ca: ca,
            token_file: token,
        } = at;
        let bare = address.trim_start_matches("http://").trim_end_matches('/');
        let (bare, is_secure) = match bare.strip_prefix("https://") {
            Some(bare) => (bare, true),
            None => (bare, ca.is_some()),
        };
        let tls = ClientTls {
            ca,
            name: None,
            identity: None,
            verify: Verify::Full,
        };
        Self {
            address: bare.to_owned(),
            tls: is_secure.then_some(tls),
            token,
        }
    }

    /// A runtime for what is asked of it.
    pub(super) fn runtime(&self) -> Result<Runtime, AskError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| AskError::Unreachable(self.address.clone(), error))
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The value of the header with the token; empty if there is none.
    fn authorization(&self) -> Result<String, AskError> {
        let Some(path) = &self.token else {
            return Ok(String::new());
        };
        let refused = |why: String| AskError::Refused(format!("--token-file {}: {why}", path.display()));
        let text = file::read(path).map_err(|error| refused(error.to_string()))?;
        let token = text.lines().map(str::trim).find(|line| !line.is_empty());
        let token = token.ok_or_else(|| refused("it holds no token".to_owned()))?;
        Ok(format!("Bearer {token}"))
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(&self.address).await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let host = self.address.rsplit_once(':').map(|(host, _)| host);
        let host = host.map(|host| host.trim_matches(['[', ']']));
        let connector = Certificates::default().connector(tls, host);
        let connector = connector.map_err(io::Error::other)?;
        let connecting = TlsConnector::from(connector.config()).connect(connector.name(), stream);
        Ok(Box::new(connecting.await?))
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Asks the admin port, and returns the text of its answer.
pub(super) fn ask(at: &Admin, method: Method, path: &str) -> Result<String, AskError> {
    ask_within(at, method, path, ANSWER)
}

/// The same for an answer that takes up to this time.
pub(super) fn ask_within(
    at: &Admin,
    method: Method,
    path: &str,
    limit: Duration,
) -> Result<String, AskError> {
    let asked = async { whole(granted(at, method, path, None).await?).await };
    at.runtime()?.block_on(async {
        let late = |_| AskError::Late(at.address.clone());
        timeout(limit, asked).await.map_err(late)?
    })
}

/// Sends a request on a connection of its own, and returns the head of its answer, whose body is to be read.
/// `after`: the last event that the asker knows of.
async fn send(
    at: &Admin,
    method: Method,
    path: &str,
    after: Option<u64>,
) -> Result<Response<Incoming>, AskError> {
    let admin = &*at.address;
    let authorization = at.authorization()?;
    let unreachable = |error| AskError::Unreachable(admin.to_owned(), error);
    let stream = at.connect().await.map_err(unreachable)?;
    let http = |error| AskError::Http(admin.to_owned(), error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, admin)
        .header("x-proxima", "yes");
    if !authorization.is_empty() {
        request = request.header(AUTHORIZATION, authorization);
    }
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    let request = request.body(Body::empty());
    let request = request.map_err(|error| AskError::Refused(error.to_string()))?;
    sender.send_request(request).await.map_err(http)
}

/// The same for an answer that is no refusal.
async fn granted(
    at: &Admin,
    method: Method,
    path: &str,
    after: Option<u64>,
) -> Result<Response<Incoming>, AskError> {
    let answer = send(at, method, path, after).await?;
    match answer.status() {
        StatusCode::OK => Ok(answer),
        status => Err(AskError::Refused(match whole(answer).await?.trim_end() {
            "" => format!("the admin port {} answers {path} with {status}", at.address),
            why => why.to_owned(),
        })),
    }
}

async fn whole(answer: Response<Incoming>) -> Result<String, AskError> {
    let body = to_bytes(Body::new(answer.into_body()), MOST).await;
    let body = body.map_err(|error| AskError::Refused(error.to_string()))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// An answer that goes on for as long as the proxy has something to tell.
pub(super) struct LongAnswer {
    admin: String,
    body: Incoming,
}

impl LongAnswer {
    /// Asks for it, and waits for its head.
    ///
    /// # Errors
    /// The admin port cannot be asked, or refuses.
    pub(super) async fn of(at: &Admin, path: &str, after: Option<u64>) -> Result<Self, AskError> {
        let admin = at.address.clone();
        let answer = timeout(ANSWER, granted(at, Method::GET, path, after)).await;
        let body = answer.map_err(|_| AskError::Late(admin.clone()))??.into_body();
        Ok(Self { admin, body })
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, AskError> {
        loop {
            let frame = poll_fn(|turn| Pin::new(&mut self.body).poll_frame(turn)).await;
            let lost = |error| AskError::Lost(self.admin.clone(), error);
            let Some(frame) = frame.transpose().map_err(lost)? else {
                return Ok(None);
            };
            // Trailers say nothing here.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }
}

/// The text of a page.
///
/// # Errors
/// The admin port cannot be asked, or refuses.
pub(super) async fn page(at: &Admin, path: &str) -> Result<String, AskError> {
    let asked = async { whole(granted(at, Method::GET, path, None).await?).await };
    let late = |_| AskError::Late(at.address.clone());
    timeout(ANSWER, asked).await.map_err(late)?
}

/// Asks for a page of the admin port.
pub(super) fn get(at: AdminPort, path: &str) -> Result<String, AskError> {
    ask(&Admin::of(at), Method::GET, path)
}

/// Shows the answer of the admin port as it is, or as people read it.
pub(super) fn shown<T: DeserializeOwned>(
    asked: Result<String, AskError>,
    as_json: bool,
    show: impl FnOnce(&T) -> String,
) -> Answer {
    match asked {
        Ok(text) if as_json => Answer::good(format!("{text}\n")),
        Ok(text) => match serde_json::from_str(&text) {
            Ok(answer) => Answer::good(show(&answer)),
            Err(error) => Answer::bad(1, format!("proxima: the answer cannot be read: {error}")),
        },
        Err(error) => Answer::bad(1, format!("proxima: {error}")),
    }
}
