//! In which container a process on the other end of a Unix socket is.

use std::{fs::File, io::Read};

use crate::members::ClientSource;

/// More than the kernel writes for any process.
const LONGEST: u64 = 16 << 10;

/// The container of this process. Nothing is known of one that has ended, that is outside of our PID namespace (its number is 0), or
/// whose `/proc` is hidden from us.
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
