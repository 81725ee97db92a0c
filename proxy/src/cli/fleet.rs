//! `proxima fleet`: the fleet as a running proxy sees it, keys for its channels, and the acts of an operator.

use std::{
    fmt::Write,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use axum::body::{Body, to_bytes};
use hyper::{Method, Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{Answer, args::Fleet};
use crate::{
    config::{
        self,
        schema::{ClientTls, Verify},
    },
    control::{FleetStatus, InitError, init_directory, make_keys},
    tls::Certificates,
};

/// Time for the answer of the admin port.
const ANSWER: Duration = Duration::from_secs(5);
/// The most bytes of an answer.
const MOST: usize = 16 << 20;

/// A proxy does not do what it was asked for.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("nobody answers at the admin port {0}: {1}. `--admin` names another one")]
    Unreachable(String, std::io::Error),
    #[error("the admin port {0} does not answer as one: {1}")]
    Http(String, hyper::Error),
    #[error("the admin port {0} does not answer in time")]
    Late(String),
    #[error("{0}")]
    Refused(String),
}

/// Does what this command says.
pub(super) fn fleet(command: Fleet) -> Answer {
    match command {
        Fleet::Show {
            admin,
            admin_ca,
            json,
        } => match ask(&Admin::of(admin, admin_ca), Method::GET, "/fleet") {
            Ok(text) if json => Answer::good(format!("{text}\n")),
            Ok(text) => match serde_json::from_str(&text) {
                Ok(status) => Answer::good(table(&status)),
                Err(error) => Answer::bad(1, format!("proxima: the answer cannot be read: {error}")),
            },
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        },
        Fleet::Remove {
            name,
            admin,
            admin_ca,
        } => {
            let admin = Admin::of(admin, admin_ca);
            let name = utf8_percent_encode(&name, NON_ALPHANUMERIC);
            match ask(&admin, Method::POST, &format!("/fleet/remove?peer={name}")) {
                Ok(text) => Answer::good(text),
                Err(error) => Answer::bad(1, format!("proxima: {error}")),
            }
        }
        Fleet::Keys { dir, names } => match make_keys(&dir, &names) {
            Ok(written) => {
                let written = written.iter().map(|path| format!("{}\n", path.display()));
                Answer::good(written.collect())
            }
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        },
        Fleet::Init { config, force } => init(&config, force),
    }
}

fn init(file: &Path, force: bool) -> Answer {
    let loaded = match config::load(file) {
        Ok(loaded) => loaded,
        Err(error) => return Answer::bad(1, error.to_string()),
    };
    let Some(fleet) = loaded.config.fleet else {
        return Answer::bad(1, format!("proxima: {} has no `fleet`", file.display()));
    };
    match init_directory(&fleet.dir, force) {
        Ok(()) => Answer::good(format!("{} is that of a new peer\n", fleet.dir.display())),
        Err(error @ InitError::InUse(_)) => Answer::bad(2, format!("proxima: {error}")),
        Err(error) => Answer::bad(1, format!("proxima: {error}")),
    }
}

/// An admin port.
struct Admin {
    address: String,
    /// TLS with it. `None`: it speaks plainly.
    tls: Option<ClientTls>,
}

impl Admin {
    /// The one at this address, which may stand behind `https://`.
    fn of(address: String, ca: Option<PathBuf>) -> Self {
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
fn ask(at: &Admin, method: Method, path: &str) -> Result<String, AskError> {
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
        timeout(ANSWER, asked).await.map_err(late)?
    })
}

fn table(status: &FleetStatus) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} of fleet {}: view {} ({}), term {}, leader {}, lease {:.1} s",
        status.name,
        status.fleet.as_deref().unwrap_or("(none yet)"),
        status.view,
        if status.why.is_empty() {
            "the first"
        } else {
            &status.why
        },
        status.term,
        status.leader.as_deref().unwrap_or("(none)"),
        status.lease_seconds,
    );
    if !status.waits_for.is_empty() {
        let _ = writeln!(out, "it has not joined: {}", status.waits_for);
    }
    for alert in &status.alerts {
        let _ = writeln!(out, "ALERT {alert}");
    }
    let voters: Vec<&str> = status.voters.keys().map(String::as_str).collect();
    let _ = writeln!(out, "voters: {}\n", voters.join(", "));
    let _ = writeln!(
        out,
        "{:<24} {:<22} {:>6} {:<8} {:<16} link",
        "peer", "address", "since", "decides", "copies"
    );
    for peer in &status.peers {
        let link = match (&peer.unreachable, peer.round_trip_ms) {
            (Some(why), _) => why.clone(),
            (None, Some(time)) => format!("{time:.1} ms"),
            (None, None) if peer.name == status.name => "this one".to_owned(),
            (None, None) => "unknown".to_owned(),
        };
        let complaints = match peer.complains_of.is_empty() {
            true => String::new(),
            false => format!("; it complains of {}", peer.complains_of.join(", ")),
        };
        let _ = writeln!(
            out,
            "{:<24} {:<22} {:>6} {:<8} {:<16} {link}{complaints}",
            peer.name,
            peer.address,
            peer.since_view,
            if peer.decides { "yes" } else { "no" },
            peer.copies.join(","),
        );
    }
    for name in &status.candidates {
        let _ = writeln!(out, "{name} wants to join");
    }
    for (name, why) in status.removed.iter().rev().take(8) {
        let _ = writeln!(out, "{name} left: {why}");
    }
    out
}
