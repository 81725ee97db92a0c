//! One request to the API server.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use axum::body::Body;
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http1,
    header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle, time::timeout};
use tokio_rustls::TlsConnector;

use super::{ServiceFailure, access::Access};
use crate::{control::surroundings::discovery::Resolve, tls::Certificates};

/// Time for a connection with its handshake, and for the head of a reply.
const CONNECT: Duration = Duration::from_secs(3);
const HEAD: Duration = Duration::from_secs(10);
/// The most bytes of a reply's status and fields.
const LONGEST_HEAD: usize = 64 << 10;

/// A reply. Its connection ends with it.
pub(super) struct Reply {
    pub(super) body: Incoming,
    task: AbortHandle,
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks the API server for this path.
///
/// # Errors
/// It does not answer, or with an error. `namespace` is that of the objects.
pub(super) async fn get(
    access: &Access,
    certificates: &Arc<Certificates>,
    resolve: &impl Resolve,
    (path, namespace): (&str, &str),
) -> Result<Reply, ServiceFailure> {
    let mut authorization =
        HeaderValue::from_str(&format!("Bearer {}", access.token()?)).map_err(|_| ServiceFailure::Unknown)?;
    // Secrets never reach logs.
    authorization.set_sensitive(true);
    let host = match access.host.contains(':') {
        true => format!("[{}]:{}", access.host, access.port),
        false => format!("{}:{}", access.host, access.port),
    };
    let request = Request::get(path)
        .header(HOST, host)
        .header(USER_AGENT, "proxima")
        .header(ACCEPT, "application/json")
        .header(AUTHORIZATION, authorization)
        .body(Body::empty());
    let request = request.map_err(|error| ServiceFailure::Cut(error.to_string()))?;
    let late = |_| Err(ServiceFailure::Late);
    let stream = timeout(CONNECT, connect(access, certificates, resolve))
        .await
        .unwrap_or_else(late)?;
    let cut = |error: hyper::Error| ServiceFailure::Cut(error.to_string());
    let mut builder = http1::Builder::new();
    let (mut sender, connection) = builder
        .max_buf_size(LONGEST_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(cut)?;
    let task = tokio::spawn(async move {
        // Its end is seen by whoever reads the reply.
        let _ = connection.await;
    });
    let task = task.abort_handle();
    let reply = match timeout(HEAD, sender.send_request(request)).await {
        Ok(reply) => reply.map_err(cut),
        Err(_) => Err(ServiceFailure::Late),
    };
    let reply = reply.inspect_err(|_| task.abort())?;
    judge(&reply, namespace).inspect_err(|_| task.abort())?;
    Ok(Reply {
        body: reply.into_body(),
        task,
    })
}

fn judge(reply: &Response<Incoming>, namespace: &str) -> Result<(), ServiceFailure> {
    match reply.status().as_u16() {
        200 => Ok(()),
        401 => Err(ServiceFailure::Unknown),
        403 => Err(ServiceFailure::Forbidden {
            namespace: namespace.to_owned(),
        }),
        other => Err(ServiceFailure::Status(other)),
    }
}

async fn connect(
    access: &Access,
    certificates: &Arc<Certificates>,
    resolve: &impl Resolve,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ServiceFailure> {
    let tls = certificates.connector(&access.tls(), Some(&access.host))?;
    let mut last = io::Error::other("its name has no address");
    for ip in addresses(&access.host, resolve).await? {
        match TcpStream::connect((ip, access.port)).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(TlsConnector::from(tls.config())
                    .connect(tls.name(), stream)
                    .await?);
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

async fn addresses(host: &str, resolve: &impl Resolve) -> Result<Vec<IpAddr>, ServiceFailure> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    let found = resolve.resolve(host).await;
    let found = found.map_err(ServiceFailure::Connect)?;
    Ok(found.unwrap_or_default())
}
