//! After a submission: finds out what was sent and what has arrived.

use std::mem;

use io_uring::types;

use super::{
    Uring,
    connection::{Op, PassedPiece, conn, op},
};
use crate::reactor::{Conn, Reactor};

/// Calls to fetch the completions of one wake-up: enough for two thousand clients that are ready at once.
const GATHERS: usize = 100;

impl Uring {
    /// Lets the kernel finish operations that have arrived meanwhile. After a wake-up it completes one
    /// operation, and then some twenty for each call (`IO_LOCAL_TW_DEFAULT_MAX`). Served in such portions,
    /// one batch of clients would reach the servers in many small writes.
    pub(super) fn gather(&mut self) {
        for _ in 0..GATHERS {
            // An error here shows again in the next wait, which reports it.
            if !self.ring.submission().taskrun() || self.ring.submit_and_wait(0).is_err() {
                return;
            }
        }
    }

    /// Handles a submission: quick sends without a completion are done.
    pub(super) fn settle(&mut self) {
        loop {
            let mut queue = self.ring.completion();
            queue.sync();
            self.completions
                .extend(queue.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
            if !self.ring.submission().cq_overflow() {
                break;
            }
            // The kernel keeps completions that did not fit; this call hands them over.
            let _ = self
                .ring
                .submitter()
                .submit_with_args(0, &types::SubmitArgs::new());
        }
        if !(self.quick.is_empty() && self.passed.is_empty()) {
            for at in 0..self.completions.len() {
                let (data, result, _) = self.completions[at];
                if op(data) == Some(Op::Quick) {
                    self.quick_failed(conn(data), result);
                }
            }
        }
        let mut quick = mem::take(&mut self.quick);
        for conn in quick.drain(..) {
            if let Some(connection) = self.connection(conn)
                && !connection.slow
            {
                connection.sent = 0;
                let bytes = mem::take(&mut connection.sending);
                self.keep(bytes);
            }
        }
        self.quick = quick;
        let mut passed = mem::take(&mut self.passed);
        for PassedPiece { conn, piece } in passed.drain(..) {
            if let Some(connection) = self.connection(conn) {
                connection.passing = 0;
            }
            self.recycle(piece);
        }
        self.passed = passed;
        let mut closing = mem::take(&mut self.closing);
        for conn in closing.drain(..) {
            self.finish(conn);
        }
        self.closing = closing;
    }

    pub(super) fn quick_failed(&mut self, conn: Conn, result: i32) {
        let passed = self.passed.iter().position(|passed| passed.conn == conn);
        if result < 0 && result != -libc::EAGAIN && result != -libc::EINTR {
            return self.break_off(conn, -result);
        }
        let rest = passed.map(|at| self.passed[at].piece.to_vec());
        let Some(connection) = self.open(conn) else { return };
        if let Some(rest) = rest {
            connection.sending = rest;
        }
        connection.sent = result.max(0) as usize;
        self.send_slowly(conn);
    }
}
