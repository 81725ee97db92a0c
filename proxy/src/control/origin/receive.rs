//! Reads an origin's reply: within bounds, and whole or not at all.

use std::{future::poll_fn, pin::Pin, time::Duration};

use hyper::{
    HeaderMap, Response, StatusCode,
    body::{Body, Incoming},
    header::{CONTENT_ENCODING, TRANSFER_ENCODING},
};
use proxima_wire::message::Outcome;
use tokio::time::timeout;

use super::failure::{broken, failed};
use crate::{
    control::unix_now,
    near::{Failure, Fetch, OriginReply, freshness},
};

/// The most bytes of a body that is of no use, but is read so that its connection can be kept.
const USELESS: u64 = 16 << 10;
/// The time for that.
const USELESS_TIME: Duration = Duration::from_millis(50);

/// Reads a reply. `took`: the time until its head came. Returns what it says, and whether its connection can
/// take a further request.
pub(super) async fn receive(
    fetch: &Fetch,
    reply: Response<Incoming>,
    took: Duration,
) -> Result<(OriginReply, bool), Failure> {
    let (head, body) = reply.into_parts();
    let (fields, now) = (&head.headers, unix_now().into());
    match (head.status, &fetch.validator) {
        (StatusCode::OK, _) => {
            check_encoding(fields)?;
            let value = collect(fields, body, fetch.largest).await?;
            let terms = freshness(fields, None, now, took);
            Ok((OriginReply::Value(value.into(), terms), true))
        }
        (StatusCode::NOT_FOUND, _) => {
            let terms = freshness(fields, None, now, took);
            Ok((OriginReply::Missing(terms), is_over(body).await))
        }
        (StatusCode::NOT_MODIFIED, Some(validator)) => {
            if !validator.is_confirmed_by(fields) {
                let text = "it confirms another version than the one that it was asked about";
                return Err(failed(Outcome::RemoteError, text));
            }
            let terms = freshness(fields, Some(validator), now, took);
            Ok((OriginReply::Same(terms), is_over(body).await))
        }
        (status, _) if status.is_redirection() => {
            let text = format!("status {}: redirects are not followed", status.as_u16());
            Err(failed(Outcome::RemoteError, text))
        }
        (status, _) => Err(failed(
            Outcome::RemoteError,
            format!("status {}", status.as_u16()),
        )),
    }
}

/// A value that is packed although nobody asked for that is none that a client can read.
fn check_encoding(fields: &HeaderMap) -> Result<(), Failure> {
    let mut encodings = fields.get_all(CONTENT_ENCODING).iter();
    match encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        true => Ok(()),
        false => Err(failed(
            Outcome::RemoteError,
            "its reply has a content-encoding, although identity was asked for",
        )),
    }
}

async fn collect(fields: &HeaderMap, mut body: Incoming, largest: u64) -> Result<Vec<u8>, Failure> {
    let too_large = || {
        let text = format!("its value is larger than the rule's {largest} bytes");
        failed(Outcome::RemoteError, text)
    };
    let length = body.size_hint().exact();
    if length.is_none() && !fields.contains_key(TRANSFER_ENCODING) {
        let text =
            "its reply has neither content-length nor chunks, so that a break could not be told from its end";
        return Err(failed(Outcome::RemoteError, text));
    }
    if length.is_some_and(|length| length > largest) {
        return Err(too_large());
    }
    let mut value = Vec::with_capacity(length.unwrap_or(0) as usize);
    while let Some(frame) = next(&mut body).await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if (value.len() + data.len()) as u64 > largest {
            return Err(too_large());
        }
        value.extend_from_slice(&data);
    }
    Ok(value)
}

/// Reads the rest of a body that is of no use, if it is short and comes soon. Returns whether it has ended.
async fn is_over(mut body: Incoming) -> bool {
    let read = async {
        let mut rest = USELESS;
        while let Some(frame) = next(&mut body).await {
            let data = frame.ok()?.into_data().unwrap_or_default();
            rest = rest.checked_sub(data.len() as u64)?;
        }
        Some(())
    };
    timeout(USELESS_TIME, read).await.is_ok_and(|end| end.is_some())
}

async fn next(body: &mut Incoming) -> Option<Result<hyper::body::Frame<hyper::body::Bytes>, hyper::Error>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}
