//! Which requests the admin port answers. Reading needs no password, but a page from elsewhere must not use the
//! browser of a person who can reach it: neither by a name that was bound to our address (DNS rebinding), nor
//! by a form or script (cross-site requests). Browsers say in `Host` which site they believe to ask, and in
//! `Origin` whose page does.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::task::spawn_blocking;

use super::tokens::{Tokens, TokensError};
use crate::control::Proxy;

/// The header of requests that change something, where they need no token. A form cannot send it, and a script of
/// another site has to ask first whether it may, which is never allowed here. The same holds for a token's.
pub(super) const HEADER: &str = "x-proxima";

/// Domains that public DNS does not serve, so that a stranger cannot bind a name in them to our address:
/// those of clusters, machines and private networks.
const PRIVATE: [&str; 6] = ["localhost", "local", "svc", "internal", "home.arpa", "test"];

/// What the guard knows.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) proxy: Arc<Proxy>,
    /// The tokens of those who may change something. `None`: whoever is answered may.
    pub(super) tokens: Option<Tokens>,
    /// The log has said that their file cannot be used. Whoever asks again and again fills no log.
    pub(super) is_told: Arc<AtomicBool>,
}

/// The request has shown a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct HasToken;

pub(super) async fn guard(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let own = |name: &str| guard.proxy.is_called(name);
    let host = request.uri().authority().map(|authority| authority.as_str());
    let change = match check(request.method(), host, request.headers(), &own) {
        Ok(change) => change,
        Err(why) => return (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    };
    let checked = match (change, guard.tokens) {
        (Change::None, _) => Ok(()),
        (Change::By(_), Some(tokens)) => match authorize(tokens, request.headers()).await {
            Ok(()) => {
                guard.is_told.store(false, Relaxed);
                request.extensions_mut().insert(HasToken);
                Ok(())
            }
            Err(why) => {
                if let Unauthorized::Unknown(error) = &why
                    && !guard.is_told.swap(true, Relaxed)
                {
                    tracing::error!(%error, "nobody may change anything by the admin port");
                }
                return why.into_response();
            }
        },
        (Change::By(method), None) => with_header(&method, request.headers()),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    }
}

/// Checks the token of a request.
async fn authorize(tokens: Tokens, headers: &HeaderMap) -> Result<(), Unauthorized> {
    let shown = headers.get(header::AUTHORIZATION).ok_or(Unauthorized::Missing)?;
    let (scheme, token) = shown
        .as_bytes()
        .split_at_checked(7)
        .ok_or(Unauthorized::Missing)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return Err(Unauthorized::Missing);
    }
    let token = token.trim_ascii().to_vec();
    // A file system that hangs must not hold up the control thread.
    let known = spawn_blocking(move || tokens.have(&token)).await;
    match known.unwrap_or(Ok(false)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Unauthorized::Wrong),
        Err(error) => Err(Unauthorized::Unknown(error)),
    }
}

/// Why a request may not change anything.
#[derive(Debug, thiserror::Error)]
enum Unauthorized {
    #[error(
        "what changes something needs a token of this proxy's `token_file`: curl -H 'Authorization: Bearer …', or \
         proxima … --token-file FILE"
    )]
    Missing,
    #[error("this is no token of this proxy's `token_file`")]
    Wrong,
    #[error("nothing can be changed: {0}")]
    Unknown(TokensError),
}

impl IntoResponse for Unauthorized {
    fn into_response(self) -> Response {
        let asks = [(header::WWW_AUTHENTICATE, "Bearer")];
        (StatusCode::UNAUTHORIZED, asks, format!("{self}\n")).into_response()
    }
}

/// Does a request change something?
#[derive(Debug)]
enum Change {
    None,
    By(Method),
}

/// Why a request, which may come from a web page, is not answered. The client has to ask otherwise, or the
/// operator has to name the host.
#[derive(Debug, thiserror::Error)]
enum Forbidden {
    #[error(
        "the admin port is not known as `{0}`: ask it by IP address, or name it in `admin_hosts` of the configuration"
    )]
    Host(String),
    #[error("pages of `{0}` may not ask the admin port")]
    Origin(String),
    #[error(
        "what changes something needs the header X-Proxima, which no web page can send: curl -X {0} -H 'X-Proxima: yes' …"
    )]
    Header(Method),
}

/// Checks a request. `authority` is the host of the request line, if it has one. `own` knows this machine's
/// names.
fn check(
    method: &Method,
    authority: Option<&str>,
    headers: &HeaderMap,
    own: &dyn Fn(&str) -> bool,
) -> Result<Change, Forbidden> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST);
    // Requests without a host (HTTP/1.0) come from no browser.
    for host in authority.into_iter().chain(host).filter(|host| !host.is_empty()) {
        let name = without_port(host);
        if !is_private(name) && !own(name) {
            return Err(Forbidden::Host(name.escape_debug().to_string()));
        }
    }
    let foreign = |origin: &str| {
        let (_, site) = origin.split_once("://").unwrap_or(("", ""));
        !host.is_some_and(|host| host.eq_ignore_ascii_case(site))
    };
    if let Some(origin) = text(header::ORIGIN).filter(|origin| foreign(origin)) {
        return Err(Forbidden::Origin(origin.escape_debug().to_string()));
    }
    Ok(match *method {
        Method::GET | Method::HEAD => Change::None,
        _ => Change::By(method.clone()),
    })
}

/// Checks the header that a request needs which changes something.
fn with_header(method: &Method, headers: &HeaderMap) -> Result<(), Forbidden> {
    match headers.contains_key(HEADER) {
        true => Ok(()),
        false => Err(Forbidden::Header(method.clone())),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Whether this is an address, or a name that a stranger cannot have bound to ours.
fn is_private(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if bare.unwrap_or(name).parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let below = |domain: &str| {
        let rest = name.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    // A name of a single label belongs to no public domain: it is a service in the same namespace, a
    // container, or a machine of this network.
    !name.contains('.') || PRIVATE.iter().any(|domain| below(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, pairs: &[(&str, &str)]) -> Result<(), Forbidden> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: header::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let own = |name: &str| name == "node1.example.com";
        match check(&method.parse().unwrap(), None, &headers, &own)? {
            Change::None => Ok(()),
            Change::By(method) => with_header(&method, &headers),
        }
    }

    #[test]
    fn whoever_names_an_address_or_a_private_name_is_answered() {
        for host in [
            "10.0.0.7:9150", // Prometheus and kubelet, by a pod's address
            "10.0.0.7",
            "[fd00::7]:9150",
            "localhost:9150", // kubectl port-forward
            "LocalHost",
            "proxima:9150", // a Service of the same namespace, a container
            "proxima.cache.svc",
            "proxima.cache.svc.cluster.local:9150",
            "ip-10-0-0-7.eu-central-1.compute.internal:9150",
            "node1.example.com:9150",
            "",
        ] {
            let result = ask("GET", &[("host", host)]);
            assert!(result.is_ok(), "{host}: {result:?}");
        }
        assert!(ask("GET", &[]).is_ok());
    }

    #[test]
    fn names_that_anybody_may_bind_are_not_answered() {
        for host in [
            "evil.example",
            "evil.example:9150",
            "127.0.0.1.evil.example",
            "local.evil.example",
            "xlocalhost.com",
            "a.xsvc",
        ] {
            assert!(ask("GET", &[("host", host)]).is_err(), "{host}");
        }
    }

    #[test]
    fn pages_from_elsewhere_and_forms_change_nothing() {
        let host = ("host", "localhost:9150");
        assert!(ask("GET", &[host, ("origin", "http://localhost:9150")]).is_ok());
        for origin in [
            "http://evil.example",
            "http://localhost:9151",
            "null",
            "localhost:9150",
        ] {
            assert!(ask("GET", &[host, ("origin", origin)]).is_err(), "{origin}");
            assert!(ask("POST", &[host, ("x-proxima", "yes"), ("origin", origin)]).is_err());
        }
        assert!(ask("POST", &[host]).is_err());
        assert!(ask("POST", &[host, ("x-proxima", "yes")]).is_ok());
    }
}
