//! The container of the process at the other end of a Unix socket.

use std::{fs::File, io::Read};

use crate::members::ClientSource;

/// More bytes than the kernel writes for any process.
const LONGEST: u64 = 16 << 10;

/// The container of this process. It is unknown if the process has ended, if it is outside of this PID
/// namespace (its number is 0 then), or if its `/proc` is hidden from the proxy.
pub(super) fn container(process: u32) -> ClientSource {
    let mut text = String::new();
    let read = File::open(format!("/proc/{process}/cgroup"))
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    match read {
        Ok(_) => ClientSource::of_cgroup(&text),
        Err(_) => ClientSource::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_that_cannot_be_seen_is_unknown() {
        assert_eq!(container(0), ClientSource::Unknown);
        assert_eq!(container(u32::MAX), ClientSource::Unknown);
    }
}
