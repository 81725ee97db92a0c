//! Requests to the API server.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use axum::body::Body;
use hyper::{
    Method, Request, Response,
    body::Incoming,
    client::conn::http1,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use super::{
    ApiFailure,
    access::Access,
    lines::{LONGEST, whole},
    reply::Reply,
    rights::Needed,
};
use crate::{control::surroundings::discovery::Resolve, tls::Certificates};

/// Time for a connection with its handshake, and for the head of a reply.
const CONNECT: Duration = Duration::from_secs(3);
const HEAD: Duration = Duration::from_secs(10);
/// The most bytes of a reply's status and fields.
const LONGEST_HEAD: usize = 64 << 10;

/// The API server, as this pod reaches it.
#[derive(Clone)]
pub(in crate::control) struct Api {
    certificates: Arc<Certificates>,
}

impl Api {
    pub(in crate::control) fn new(certificates: Arc<Certificates>) -> Self {
        Self { certificates }
    }

    /// Asks for this path.
    ///
    /// # Errors
    /// It does not answer, or with an error.
    pub(super) async fn get(
        &self,
        resolve: &impl Resolve,
        path: &str,
        needed: Needed<'_>,
    ) -> Result<Reply, ApiFailure> {
        self.ask(resolve, (Method::GET, path), None, needed).await
    }

    /// The object at this path. `None`: there is none.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub(in crate::control) async fn object(
        &self,
        resolve: &impl Resolve,
        path: &str,
        needed: Needed<'_>,
    ) -> Result<Option<Value>, ApiFailure> {
        let reply = match self.get(resolve, path, needed).await {
            Err(ApiFailure::Status(404)) => return Ok(None),
            other => other?,
        };
        let text = whole(reply, LONGEST, HEAD).await?;
        let object = serde_json::from_slice(&text);
        object.map(Some).map_err(|_| ApiFailure::NoObject)
    }

    /// Makes an object by POST in a collection, or replaces one by PUT. Returns whether it did: not if another
    /// one was faster, as the object says by its `resourceVersion`.
    ///
    /// # Errors
    /// See [`Self::get`]. It is not known then whether the object was written.
    pub(in crate::control) async fn write(
        &self,
        resolve: &impl Resolve,
        (method, path): (Method, &str),
        object: &Value,
        needed: Needed<'_>,
    ) -> Result<bool, ApiFailure> {
        let asked = self.ask(resolve, (method, path), Some(object), needed).await;
        match asked {
            Ok(_) => Ok(true),
            // It has changed, or is gone.
            Err(ApiFailure::Status(404 | 409)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn ask(
        &self,
        resolve: &impl Resolve,
        (method, path): (Method, &str),
        object: Option<&Value>,
        needed: Needed<'_>,
    ) -> Result<Reply, ApiFailure> {
        let access = Access::of_pod()?;
        let request = request(&access, (method, path), object)?;
        let late = |_| Err(ApiFailure::Late);
        let stream = timeout(CONNECT, connect(&access, &self.certificates, resolve))
            .await
            .unwrap_or_else(late)?;
        let cut = |error: hyper::Error| ApiFailure::Cut(error.to_string());
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
            Err(_) => Err(ApiFailure::Late),
        };
        let reply = reply.inspect_err(|_| task.abort())?;
        judge(&reply, needed).inspect_err(|_| task.abort())?;
        Ok(Reply {
            body: reply.into_body(),
            task,
        })
    }
}

fn request(
    access: &Access,
    (method, path): (Method, &str),
    object: Option<&Value>,
) -> Result<Request<Body>, ApiFailure> {
    let mut authorization =
        HeaderValue::from_str(&format!("Bearer {}", access.token()?)).map_err(|_| ApiFailure::Unknown)?;
    // Secrets never reach logs.
    authorization.set_sensitive(true);
    let host = match access.host.contains(':') {
        true => format!("[{}]:{}", access.host, access.port),
        false => format!("{}:{}", access.host, access.port),
    };
    let body = object.map_or_else(Body::empty, |object| Body::from(object.to_string()));
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, host)
        .header(USER_AGENT, "proxima")
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, authorization)
        .body(body)
        .map_err(|error| ApiFailure::Cut(error.to_string()))
}

fn judge(reply: &Response<Incoming>, needed: Needed<'_>) -> Result<(), ApiFailure> {
    match reply.status().as_u16() {
        200 | 201 => Ok(()),
        401 => Err(ApiFailure::Unknown),
        403 => Err(ApiFailure::Forbidden {
            namespace: needed.namespace.to_owned(),
            right: needed.right,
        }),
        other => Err(ApiFailure::Status(other)),
    }
}

async fn connect(
    access: &Access,
    certificates: &Arc<Certificates>,
    resolve: &impl Resolve,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ApiFailure> {
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

async fn addresses(host: &str, resolve: &impl Resolve) -> Result<Vec<IpAddr>, ApiFailure> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    let found = resolve.resolve(host).await;
    let found = found.map_err(ApiFailure::Connect)?;
    Ok(found.unwrap_or_default())
}
