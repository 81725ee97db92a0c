//! Connections of operators, bounded: they take descriptors of the same process as clients do.

use std::{sync::Arc, time::Duration};

use axum::{Router, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

/// At a time: every tool of an operator needs one, for as long as an answer takes.
const MOST: usize = 64;
/// A request's head must be there after this long.
const HEAD: Duration = Duration::from_secs(10);
/// Its answer must have been taken after this long; a reload may wait for names.
const ALL: Duration = Duration::from_secs(60);

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers one request on each connection, for ever.
pub(super) async fn answer(mut listener: TcpListener, router: Router) {
    let free = Arc::new(Semaphore::new(MOST));
    loop {
        let (stream, _) = Listener::accept(&mut listener).await;
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            // Best effort: what matters is that it is closed.
            let _ = stream.try_write(BUSY);
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            // A connection that broke is nobody's loss but its own.
            let _ = timeout(ALL, one(stream, router)).await;
            drop(permit);
        });
    }
}

async fn one(stream: TcpStream, router: Router) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}
