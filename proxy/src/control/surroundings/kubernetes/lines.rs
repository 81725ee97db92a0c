//! The bytes of a reply, in bounded memory.

use std::{future::poll_fn, pin::Pin, time::Duration};

use hyper::body::Body;
use tokio::time::timeout;

use super::{ApiFailure, reply::Reply};

/// The most bytes of one object: the API server's own store takes 1.5 MiB.
pub(super) const LONGEST: usize = 4 << 20;

/// A reply that is read line by line.
pub(super) struct Lines {
    reply: Reply,
    pending: Vec<u8>,
    /// Bytes of `pending` that were handed out.
    used: usize,
}

impl Lines {
    pub(super) fn of(reply: Reply) -> Self {
        Self {
            reply,
            pending: Vec::new(),
            used: 0,
        }
    }

    /// The next line, within this time. `None`: the reply has ended.
    ///
    /// # Errors
    /// It does not come, or is too long.
    pub(super) async fn next(&mut self, within: Duration) -> Result<Option<&[u8]>, ApiFailure> {
        self.pending.drain(..self.used);
        self.used = 0;
        let mut seen = 0;
        loop {
            let end = memchr::memchr(b'\n', &self.pending[seen..]).map(|end| seen + end);
            if let Some(end) = end {
                self.used = end + 1;
                return Ok(Some(&self.pending[..end]));
            }
            seen = self.pending.len();
            if seen > LONGEST {
                return Err(ApiFailure::TooLong(LONGEST));
            }
            let late = |_| Err(ApiFailure::Late);
            match timeout(within, chunk(&mut self.reply))
                .await
                .unwrap_or_else(late)?
            {
                Some(bytes) => self.pending.extend_from_slice(&bytes),
                None if self.pending.is_empty() => return Ok(None),
                None => return Err(ApiFailure::Cut("within a line".to_owned())),
            }
        }
    }
}

/// A whole reply, within this time for each part of it.
///
/// # Errors
/// It does not come, or is longer than `most`.
pub(super) async fn whole(mut reply: Reply, most: usize, within: Duration) -> Result<Vec<u8>, ApiFailure> {
    let mut all = Vec::new();
    loop {
        let late = |_| Err(ApiFailure::Late);
        match timeout(within, chunk(&mut reply)).await.unwrap_or_else(late)? {
            Some(bytes) if all.len() + bytes.len() <= most => all.extend_from_slice(&bytes),
            Some(_) => return Err(ApiFailure::TooLong(most)),
            None => return Ok(all),
        }
    }
}

async fn chunk(reply: &mut Reply) -> Result<Option<hyper::body::Bytes>, ApiFailure> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut reply.body).poll_frame(cx)).await;
        match frame {
            Some(Ok(frame)) => {
                // Trailers say nothing here.
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Some(Err(error)) => return Err(ApiFailure::Cut(error.to_string())),
            None => return Ok(None),
        }
    }
}
