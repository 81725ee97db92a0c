//! The body of an answer that comes in pieces, for as long as there are any.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame};

/// The pieces that this function polls for.
pub(super) struct Pieces<F>(pub(super) F);

impl<F> Body for Pieces<F>
where
    F: FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Unpin,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        (self.0)(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
