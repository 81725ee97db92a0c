//! The host that this process runs on.

use std::{
    fs,
    net::{IpAddr, SocketAddr, UdpSocket},
};

/// Processors that this process may use.
pub(in crate::control) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The name of this host.
pub(in crate::control) fn name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The names of this host: its host name, and that name in the search domains of its resolver. They are read
/// at each call, as they may change.
pub(in crate::control) fn names() -> Vec<String> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let name = read("/proc/sys/kernel/hostname").trim().to_owned();
    let resolver = read("/etc/resolv.conf");
    let domains = resolver.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("search" | "domain")).then_some(words)
    });
    let mut names: Vec<String> = domains
        .flatten()
        .map(|domain| format!("{name}.{}", domain.trim_end_matches('.')))
        .collect();
    names.push(name);
    names
}

/// The address of this machine from which it would reach another.
pub(in crate::control) fn way_to(address: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(address).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified()).then_some(ip)
}
