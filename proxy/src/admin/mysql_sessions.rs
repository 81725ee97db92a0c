//! `/mysql/sessions`: the sessions of MySQL clients, and the connection that each of them has.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{
    Shared,
    query::{BadQuery, Query},
};
use crate::{
    client::{SessionFacts, SessionQuery},
    control::Proxy,
    metrics::Metrics,
    protocol::Protocol,
    protocols::Mysql,
    upstream::LaneFacts,
};

/// The sessions of MySQL clients.
#[derive(Debug, Deserialize, Serialize)]
pub struct MysqlSessions {
    /// How many sessions of each worker are in which state, by the worker's number. They are all counted,
    /// whichever were asked for.
    pub workers: Vec<BTreeMap<String, u64>>,
    /// The sessions that were asked for. Those that have a connection come first, and the one that has it
    /// longest before all.
    #[serde(default)]
    pub sessions: Vec<MysqlSession>,
    /// The number of further ones, for which there was no room.
    #[serde(default)]
    pub left_out: usize,
}

/// The session of a MySQL client.
#[derive(Debug, Deserialize, Serialize)]
pub struct MysqlSession {
    /// The number of its worker.
    pub worker: usize,
    /// Its number, which its client knows as that of the connection; `KILL` takes it.
    pub number: u64,
    /// Its user.
    pub user: String,
    /// The address of its client; `None`: a Unix socket.
    pub client: Option<String>,
    /// The schema that it uses; empty: none.
    pub schema: String,
    /// The reason why it keeps a connection, in a word.
    pub state: String,
    /// The connection that it has now; `None`: it has none.
    pub connection: Option<MysqlConnection>,
}

/// The connection to a server that a session has.
#[derive(Debug, Deserialize, Serialize)]
pub struct MysqlConnection {
    /// The server's pool.
    pub pool: String,
    /// The address of the server.
    pub address: String,
    /// The server's number of the connection; `None` before the server has told it.
    pub number: Option<u64>,
    /// Seconds for which the session has had it.
    pub seconds: f64,
    /// A statement of the session runs there.
    pub runs: bool,
}

/// `user`, `state`, `pool`: only the sessions of that user, in that state, with a connection to that pool.
pub(super) async fn sessions(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    match wanted(query.as_deref()) {
        Ok(query) => {
            // The workers are asked, which would block this thread.
            let found = spawn_blocking(move || answer(&proxy, query)).await;
            match found {
                Ok(found) => Json(found).into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

fn wanted(query: Option<&str>) -> Result<SessionQuery, BadQuery> {
    let query = Query::parse(query, &["user", "state", "pool"])?;
    Ok(SessionQuery {
        protocol: Mysql::PLAIN.name(),
        user: query.bytes("user"),
        state: query.text("state"),
        pool: query.text("pool"),
    })
}

fn answer(proxy: &Proxy, query: SessionQuery) -> MysqlSessions {
    let of_worker = |metrics: &Metrics| {
        let own = metrics.sessions.all();
        let own = own.filter(|(protocol, ..)| *protocol == Mysql::PLAIN.name());
        own.map(|(_, state, count)| (state.to_owned(), count)).collect()
    };
    let list = proxy.sessions(query);
    let sessions = list.sessions.into_iter();
    MysqlSessions {
        workers: proxy.metrics_of_each().iter().map(of_worker).collect(),
        sessions: sessions.map(|(worker, facts)| session(worker, facts)).collect(),
        left_out: list.left_out,
    }
}

fn session(worker: usize, facts: SessionFacts) -> MysqlSession {
    MysqlSession {
        worker,
        number: facts.number,
        user: facts.user,
        client: facts.client.map(|address| address.to_string()),
        schema: facts.schema,
        state: facts.state.to_owned(),
        connection: facts.lane.as_ref().map(connection),
    }
}

fn connection(facts: &LaneFacts) -> MysqlConnection {
    MysqlConnection {
        pool: facts.member.pool.name.to_string(),
        address: facts.member.address.clone(),
        number: facts.number,
        seconds: facts.owned.0 as f64 / 1e6,
        runs: facts.works,
    }
}
