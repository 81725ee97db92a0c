//! The command line's requests to the admin port of a running proxy.

use std::{io, path::PathBuf, time::Duration};

use axum::body::{Body, to_bytes};
use hyper::{Method, Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{Answer, args::AdminPort};
use crate::{
    config::schema::{ClientTls, Verify},
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
}

impl Admin {
    /// The one at this address, which may stand behind `https://`.
    pub(super) fn of(address: String, ca: Option<PathBuf>) -> Self {
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
        }
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
    let admin = &*at.address;
    let unreachable = |error| AskError::Unreachable(admin.to_owned(), error);
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let asked = async {
        let stream = at.connect().await.map_err(unreachable)?;
        let http = |error| AskError::Http(admin.to_owned(), error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, admin)
            .header("x-proxima", "yes")
            .body(Body::empty());
        let request = request.map_err(|error| AskError::Refused(error.to_string()))?;
        let answer = sender.send_request(request).await.map_err(http)?;
        let status = answer.status();
        let body = to_bytes(Body::new(answer.into_body()), MOST).await;
        let body = body.map_err(|error| AskError::Refused(error.to_string()))?;
        let text = String::from_utf8_lossy(&body).into_owned();
        match status {
            StatusCode::OK => Ok(text),
            _ => Err(AskError::Refused(text.trim_end().to_owned())),
        }
    };
    runtime.map_err(unreachable)?.block_on(async {
        let late = |_| AskError::Late(admin.to_owned());
        timeout(limit, asked).await.map_err(late)?
    })
}

/// Asks for a page of the admin port.
pub(super) fn get(at: AdminPort, path: &str) -> Result<String, AskError> {
    ask(&Admin::of(at.admin, at.admin_ca), Method::GET, path)
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
