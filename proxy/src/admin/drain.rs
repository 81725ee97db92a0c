//! `/drain`: an operator leads clients away, and takes it back. A call that is repeated changes nothing.

use axum::extract::State;

use super::Shared;
use crate::control::Proxy;

pub(super) async fn show(State(proxy): Shared) -> String {
    status(&proxy)
}

pub(super) async fn begin(State(proxy): Shared) -> String {
    proxy.set_draining(true);
    status(&proxy)
}

pub(super) async fn end(State(proxy): Shared) -> String {
    proxy.set_draining(false);
    status(&proxy)
}

fn status(proxy: &Proxy) -> String {
    match proxy.draining() {
        Some(why) => format!("draining: {why}\n"),
        None => "not draining\n".to_owned(),
    }
}
