//! The names of servers in ketama, and their order in twemproxy.

use std::cmp::Ordering;

/// The text that ketama hashes for a server: its given name, or else its `address`, which is `host:port`,
/// `[v6]:port` or `unix:/path`.
///
/// libmemcached and twemproxy leave out memcached's own port, 11211, and know a Unix socket by its path.
pub fn ketama_name<'a>(address: &'a str, given: Option<&'a str>) -> &'a str {
    if let Some(name) = given {
        return name;
    }
    if let Some(path) = address.strip_prefix("unix:") {
        return path;
    }
    match address.strip_suffix(":11211") {
        Some(host) if host.ends_with(']') || !host.contains(':') => host,
        _ => address,
    }
}

/// The order in which twemproxy numbers the servers of a pool, by name: shorter names first, then by bytes.
/// It matters to modula, not to ketama.
pub fn twemproxy_order(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use super::{ketama_name, twemproxy_order};

    #[test]
    fn the_default_port_is_no_part_of_the_name() {
        let table = [
            ("10.0.0.1:11211", "10.0.0.1"),
            ("10.0.0.1:11212", "10.0.0.1:11212"),
            ("10.0.0.1:111211", "10.0.0.1:111211"),
            ("cache", "cache"),
            ("[::1]:11211", "[::1]"),
            ("fe80::11211", "fe80::11211"),
            ("unix:/run/cache.sock", "/run/cache.sock"),
            ("unix:/run/a:11211", "/run/a:11211"),
        ];
        for (address, name) in table {
            assert_eq!(ketama_name(address, None), name);
            assert_eq!(ketama_name(address, Some("given")), "given");
        }
    }

    #[test]
    fn twemproxy_counts_short_names_first() {
        let mut names = ["zz", "b", "aaa", "a"];
        names.sort_by(|left, right| twemproxy_order(left, right));
        assert_eq!(names, ["a", "b", "zz", "aaa"]);
    }
}
