//! The unread bytes of a peer that sends no more.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionread,
};
use socket2::Socket;

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Bytes that wait to be read, if the peer has closed its side or broken the connection; `None`: more may
/// come.
pub(super) fn left_to_read(socket: &Socket) -> Option<u64> {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let count = poll(&mut polled, Some(&AT_ONCE)).unwrap_or(0);
    if count == 0 || !polled[0].revents().intersects(ended) {
        return None;
    }
    Some(ioctl_fionread(socket).unwrap_or(0))
}
