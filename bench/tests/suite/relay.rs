//! A faulty network in front of a real server.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::common::Memcached;

/// The fate of every fiftieth set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mishap {
    /// It is under way for this long, whether its client still waits or not.
    Late(Duration),
    /// It arrives, and its connection is cut before the reply.
    Unanswered,
    /// Its connection is cut before it arrives.
    Dropped,
    /// It arrives, and its client gets another client's reply first.
    Foreign,
}

/// Relays connections to `server` until the process ends, and returns the relay's address.
pub(crate) fn relay(server: &Memcached, mishap: Mishap) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = server.address();
    let sets = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (server, sets) = (server.clone(), Arc::clone(&sets));
            thread::spawn(move || {
                let upstream = TcpStream::connect(server).expect("the server is there");
                let replies = (upstream.try_clone(), client.try_clone());
                if let (Ok(from), Ok(to)) = replies {
                    thread::spawn(move || copy(from, to, |_, _| true));
                }
                copy(client, upstream, |bytes, client| {
                    let chosen =
                        bytes.starts_with(b"set ") && sets.fetch_add(1, Ordering::Relaxed) % 50 == 49;
                    match mishap {
                        Mishap::Late(time) if chosen => thread::sleep(time),
                        // No reply can reach the client any more. The bytes that were read may still be
                        // passed on.
                        Mishap::Unanswered | Mishap::Dropped if chosen => {
                            let _ = client.shutdown(Shutdown::Both);
                        }
                        Mishap::Foreign if chosen => {
                            let _ =
                                (&mut &*client).write_all(b"VALUE other 0 15\r\nanother's value\r\nEND\r\n");
                        }
                        _ => {}
                    }
                    !(chosen && matches!(mishap, Mishap::Dropped))
                });
            });
        }
    });
    address
}

/// Passes each chunk on if `treat` says so. A client sends one request at a time, so a chunk is one request.
fn copy(mut from: TcpStream, mut to: TcpStream, treat: impl Fn(&[u8], &TcpStream) -> bool) {
    let mut chunk = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if treat(&chunk[..length], &from) && to.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
