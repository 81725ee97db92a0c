//! The promises of both back ends about bytes that are passed on from the buffer in which they came.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

use proxima::reactor::{Buffer, Conn, Epoll, Event, Expect, Reactor, Uring, reason};
use socket2::Socket;

const FROM: u64 = 1;
const TO: u64 = 2;

/// A connection of the reactor, and its other end.
fn pair<R: Reactor>(reactor: &mut R, tag: u64) -> (Conn, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let expect = if tag == FROM { Expect::Large } else { Expect::Small };
    (
        reactor
            .add(tag, Socket::from(OwnedFd::from(ours)), expect)
            .unwrap(),
        theirs,
    )
}

/// The result of `wanted` for the first event for which it has one.
fn until<R: Reactor, T>(reactor: &mut R, wanted: impl Fn(Event) -> Option<T>) -> T {
    for _ in 0..10 {
        while let Some(event) = reactor.next() {
            if let Some(found) = wanted(event) {
                return found;
            }
        }
        reactor.wait(Some(Duration::from_secs(6))).unwrap();
    }
    panic!("it never came");
}

fn data(event: Event) -> Option<Buffer> {
    match event {
        Event::Data { tag: FROM, buffer } => Some(buffer),
        _ => None,
    }
}

/// The bytes that come to `socket` while the reactor works. The reactor must report no event meanwhile.
fn read<R: Reactor>(reactor: &mut R, socket: &mut UnixStream, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut chunk = [0; 10_000];
    while all.len() < len {
        match socket.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => all.extend_from_slice(&chunk[..read]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        reactor.wait(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = reactor.next() {
            assert!(matches!(event, Event::Sent { tag: TO }), "{event:?}");
        }
    }
    all
}

/// The connection is closed in the turn in which a piece was passed to it, and its descriptor is reused.
fn a_piece_passed_before_a_close_reaches_only_its_peer<R: Reactor>(mut reactor: R) {
    let (_, mut server) = pair(&mut reactor, FROM);
    let (to, mut client) = pair(&mut reactor, TO);
    // Receiving has ended on it, so only the piece keeps it open.
    client.shutdown(Shutdown::Write).unwrap();
    until(&mut reactor, |event| {
        matches!(event, Event::Eof { tag: TO }).then_some(())
    });
    server.write_all(b"for the client").unwrap();
    let buffer = until(&mut reactor, data);
    reactor.pass(to, &buffer, 4..14);
    reactor.recycle(buffer);
    reactor.close(to);
    let (_ours, mut stranger) = UnixStream::pair().unwrap();
    stranger.set_nonblocking(true).unwrap();
    assert_eq!(read(&mut reactor, &mut client, 20), b"the client");
    assert_eq!(
        stranger.read(&mut [0; 100]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

/// The reader takes a part of a piece, and the rest after many other bytes have come through the buffers.
fn pieces_reach_a_slow_reader_whole_and_in_order<R: Reactor>(mut reactor: R) {
    let (_, mut server) = pair(&mut reactor, FROM);
    let (to, mut client) = pair(&mut reactor, TO);
    let (mut passed, mut others) = (Vec::new(), 0);
    for round in 0..200_u8 {
        server.write_all(&[round; 30_000]).unwrap();
        let mut left = 30_000;
        while left > 0 {
            let buffer = until(&mut reactor, data);
            left -= buffer.len();
            if reactor.backlog(to) == 0 {
                reactor.pass(to, &buffer, 1..buffer.len());
                passed.extend_from_slice(&buffer[1..]);
            } else {
                others += buffer.len();
            }
            reactor.recycle(buffer);
        }
    }
    assert!(others > 4 << 20, "the socket has taken nearly all");
    assert!(reactor.backlog(to) > 0 && reactor.refused(to) == reactor.backlog(to));
    assert!(read(&mut reactor, &mut client, passed.len()) == passed);
    assert_eq!(reactor.backlog(to), 0);
}

/// The reactor reports a peer that has stopped reading, although nothing is received from it.
fn a_peer_that_breaks_while_sending_is_reported<R: Reactor>(mut reactor: R) {
    let (to, client) = pair(&mut reactor, TO);
    client.shutdown(Shutdown::Write).unwrap();
    until(&mut reactor, |event| {
        matches!(event, Event::Eof { tag: TO }).then_some(())
    });
    reactor.send(to, &mut vec![0; 1 << 20]);
    reactor.wait(Some(Duration::ZERO)).unwrap();
    assert!(reactor.next().is_none() && reactor.refused(to) > 0);
    drop(client);
    let error = until(&mut reactor, |event| match event {
        Event::Failed { tag: TO, error } => Some(error),
        _ => None,
    });
    // Clients and operators look for the operating system's words.
    assert!(error.raw_os_error().is_some(), "{error}");
}

/// What is sent second meets the peer's reset, so that the end of the connection is read without an error.
#[test]
fn epoll_reports_a_peer_that_is_gone_in_the_words_of_the_operating_system() {
    let mut reactor = Epoll::new().unwrap();
    let (to, client) = pair(&mut reactor, TO);
    drop(client);
    for _ in 0..2 {
        reactor.send(to, &mut vec![0; 10]);
    }
    let error = until(&mut reactor, |event| match event {
        Event::Failed { tag: TO, error } => Some(error),
        _ => None,
    });
    assert_eq!(reason(&error), "Connection reset by peer");
}

/// A peer that always sends more takes one buffer a turn.
#[test]
fn epoll_takes_one_buffer_a_turn_from_a_busy_peer() {
    let mut reactor = Epoll::new().unwrap();
    let (_, mut busy) = pair(&mut reactor, FROM);
    for _ in 0..5 {
        while busy.write(&[0; 10_000]).is_ok() {}
        reactor.wait(Some(Duration::ZERO)).unwrap();
        let mut buffers = 0;
        while let Some(event) = reactor.next() {
            reactor.recycle(data(event).unwrap());
            buffers += 1;
        }
        assert_eq!(buffers, 1);
    }
}

macro_rules! on_both {
    ($($what:ident),*) => {
        mod epoll {
            use super::*;
            $(#[test] fn $what() { super::$what(Epoll::new().unwrap()) })*
        }

        mod uring {
            use super::*;
            // Where the kernel forbids io_uring there is nothing to test.
            $(#[test] fn $what() { if Uring::probe().is_ok() { super::$what(Uring::new().unwrap()) } })*
        }
    };
}

on_both!(
    a_piece_passed_before_a_close_reaches_only_its_peer,
    pieces_reach_a_slow_reader_whole_and_in_order,
    a_peer_that_breaks_while_sending_is_reported
);
