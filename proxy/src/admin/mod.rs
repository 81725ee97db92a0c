//! The admin port: HTTP for operators and their tools, on the control thread.

mod client_orders;
mod connections;
mod console;
mod drain;
mod events;
mod explain;
mod fleet;
mod format;
mod guard;
mod health;
mod mcrouter;
mod members;
mod metrics;
mod mysql;
mod mysql_sessions;
mod near;
mod orders;
mod page;
mod pieces;
mod process;
mod query;
mod ready;
mod request_row;
mod role;
mod sampling;
mod since;
mod slow;
mod tap;
mod tokens;
mod tree;
mod twemproxy;
mod watch;

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, header},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::net::TcpListener;

use self::guard::Guard;
pub use self::{
    health::serve as serve_health,
    mcrouter::serve as answer_clients,
    mysql::{MysqlMember, MysqlPool, MysqlStatus},
    mysql_sessions::{MysqlConnection, MysqlSession, MysqlSessions},
    role::RoleRow,
    tokens::{Tokens, TokensError},
    twemproxy::{Statistics, serve_statistics},
};
use crate::{control::Proxy, tls::Acceptor};

type Shared = State<Arc<Proxy>>;

const INDEX: &str = "\
proxima
  /                              the console, in a browser
  /live                          the process runs
  /ready                         it may be sent clients (?pool=NAME&up=N: at least N members up)
  /metrics                       for Prometheus (OpenMetrics, or its text format)
  /config                        the running configuration
  /watch                         all that is told here, as it changes (server-sent events; ?with=samples)
  /events                        the last changes of state (JSON; ?after=SEQ&kind=K&limit=N)
  /tap                           samples of requests as they are answered (a line of JSON each;
                                 ?listener=L&route=POOL&prefix=P&class=read&slow=10ms&limit=100)
  /slow                          the last slow requests, and what they waited for (JSON; ?after=NUMBER&limit=N)
  /tree                          the route tree (JSON); /explain.json has the numbers of its nodes
  /members                       every server, its state and distance (JSON; ?from=IP: from a client there)
  /explain?key=K&command=get     where a request would go, and why (&listener=N&from=IP)
  /explain?sql=TEXT              what a statement does, where it would go, and what would keep a connection
                                 (&user=U&schema=S)
  /fleet                         the fleet as this proxy sees it (JSON)
  POST /fleet/remove?peer=NAME   leave a peer out; it may join again after a pause
  GET /drain                     whether clients are led away, and why
  POST /drain                    lead clients away (with the header X-Proxima: yes)
  DELETE /drain                  take that back
  /orders                        what is ordered for pools (JSON)
  POST /orders/drain?pool=P&member=M  give this member no new requests (&for=10m; with the header X-Proxima: yes)
  POST /orders/hold?pool=P       have its requests wait, if it has one writer (&for=2s)
  POST /orders/writer?pool=P&member=M  have this member take its writes (&for=10m)
  DELETE /orders/…               take an order back
  PUT /pools/P/orders/NAME       what a client wishes that orders the same at several proxies, for a time (JSON)
  /pools/P/orders                what has become of such orders (JSON); DELETE /pools/P/orders/NAME ends one
  /mysql                         the pools of MySQL servers: their writers, and each server's role (JSON)
  /mysql/sessions                which connection each session of a MySQL client has, and why; and how many
                                 sessions each worker has (?user=U&state=S&pool=P; JSON)
  /near                          the near cache: its rules, what they keep, what was counted (JSON)
  /near/top                      the keys that were answered most often (?rule=R&count=20; JSON)
  /near/explain?rule=R&key=K     what a rule does with a key
  POST /near/set?rule=R&ttl=10s  change settings at once (&stale=… &negative=… &largest=… &keep=1; or ?memory=…)
  POST /near/on?rule=R           switch a rule on (&ttl=10s), or off: POST /near/off?rule=R (&keep=1)
  POST /near/drop?rule=R&key=K   drop a key (&prefix=P: all that begin so; &all=1: the whole rule)
  POST /reload                   read the configuration again (with the header X-Proxima: yes)
";

/// Serves `address`, by TLS if there is an acceptor; with tokens only who shows one may change anything. Returns
/// the bound address.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve(
    address: &str,
    (tls, tokens): (Option<Arc<Acceptor>>, Option<Tokens>),
    proxy: Arc<Proxy>,
) -> io::Result<String> {
    let guard = Guard {
        proxy: Arc::clone(&proxy),
        tokens,
        is_told: Arc::default(),
    };
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?.to_string();
    let sampling = sampling::Sampling::new(&proxy);
    let publisher = watch::Publisher::new(&proxy, &sampling);
    let router = Router::new()
        .route(
            "/",
            get(|asked: HeaderMap| async move { console::index(&asked, INDEX) }),
        )
        .route("/console/{*path}", get(console::file))
        .route("/live", get(|| async { "live\n" }))
        .route("/ready", get(ready::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/config", get(config))
        .route("/watch", get(watch::watch).with_state(publisher))
        .route("/events", get(events::show))
        .route("/tap", get(tap::tap).with_state(sampling))
        .route("/slow", get(slow::show))
        .route("/tree", get(tree::show))
        .route("/members", get(members::members))
        .route("/explain", get(explain::explain))
        .route("/explain.json", get(explain::explain_json))
        .route("/fleet", get(fleet::show))
        .route("/fleet/remove", post(fleet::remove))
        .route("/drain", get(drain::show).post(drain::begin).delete(drain::end))
        .route("/orders", get(orders::show))
        .route("/orders/drain", post(orders::drain).delete(orders::end_drain))
        .route("/orders/hold", post(orders::hold).delete(orders::end_hold))
        .route("/orders/writer", post(orders::writer).delete(orders::end_writer))
        .route("/pools/{pool}/orders", get(client_orders::show))
        .route(
            "/pools/{pool}/orders/{name}",
            get(client_orders::show_one)
                .put(client_orders::put)
                .delete(client_orders::end)
                .layer(DefaultBodyLimit::max(client_orders::LIMIT)),
        )
        .route("/mysql", get(mysql::show))
        .route("/mysql/sessions", get(mysql_sessions::sessions))
        .route("/near", get(near::show))
        .route("/near/top", get(near::top))
        .route("/near/explain", get(near::explain))
        .route("/near/set", post(near::set))
        .route("/near/on", post(near::on))
        .route("/near/off", post(near::off))
        .route("/near/drop", post(near::drop))
        .route("/reload", post(reload))
        .layer(from_fn_with_state(guard, guard::guard))
        .with_state(proxy);
    match tls {
        None => tokio::spawn(connections::answer(listener, router, |_| true)),
        Some(tls) => tokio::spawn(connections::answer_by_tls(listener, tls, router)),
    };
    Ok(bound)
}

async fn config(State(proxy): Shared) -> String {
    proxy.config()
}

async fn reload(State(proxy): Shared) -> Response {
    match proxy.reload().await {
        Ok(true) => format!("version {}\n", proxy.version()).into_response(),
        Ok(false) => format!("unchanged, version {}\n", proxy.version()).into_response(),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response(),
    }
}

fn text(kind: &'static str, body: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}
