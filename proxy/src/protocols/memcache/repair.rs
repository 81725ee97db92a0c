//! Introduction, connections and flush of a memcached server, for repair.

use std::{collections::HashSet, net::SocketAddr, time::Duration};

use proxima_wire::memcache::{self, Command};

use super::Memcache;
use crate::protocol::{Incarnation, Introduction, Question, Repair, Unfit};

impl<const ANNOUNCES: bool> Repair for Memcache<ANNOUNCES> {
    /// The login only asks for the version, which the introduction tells as well.
    fn needs_login(&self) -> bool {
        false
    }

    fn ask_introduction(&self) -> Question {
        (Command::Stats as u16, b"stats\r\n")
    }

    fn introduction(&self, reply: &[u8]) -> Result<Introduction, Unfit> {
        let version = rows(reply).find(|(name, _)| *name == "version");
        let version = version.map_or("", |(_, version)| version);
        if memcache::meta_commands(format!("VERSION {version}").as_bytes()) != Some(true) {
            return Err(Unfit::Limited(format!(
                "it is memcached `{}`: a copy needs the meta commands of 1.6.10 or later",
                version.escape_debug()
            )));
        }
        let number = |wanted: &'static str| {
            rows(reply)
                .find(|(name, _)| *name == wanted)
                .and_then(|(_, value)| value.parse().ok())
                .ok_or(Unfit::Unsaid(wanted))
        };
        let life = Incarnation {
            pid: number("pid")?,
            uptime: Duration::from_secs(number("uptime")?),
        };
        let stored = number("total_items")?;
        Ok(Introduction { life, stored })
    }

    fn ask_connections(&self) -> Question {
        (Command::Stats as u16, b"stats conns\r\n")
    }

    /// Reads the rows `FD:addr ADDRESS`, except those of listening sockets.
    fn connections(&self, reply: &[u8]) -> HashSet<SocketAddr> {
        accepted(reply).filter_map(address).collect()
    }

    fn connection_count(&self, reply: &[u8]) -> usize {
        accepted(reply).count()
    }

    fn flush(&self) -> Option<Question> {
        Some((Command::FlushAll as u16, b"flush_all\r\n"))
    }
}

/// The remote ends of the connections that are not listening.
fn accepted(reply: &[u8]) -> impl Iterator<Item = &str> {
    let rows_of =
        move |what| rows(reply).filter_map(move |(name, value)| Some((name.strip_suffix(what)?, value)));
    let listening: HashSet<&str> = rows_of(":state")
        .filter(|(_, state)| *state == "conn_listening")
        .map(|(fd, _)| fd)
        .collect();
    rows_of(":addr")
        .filter(move |(fd, _)| !listening.contains(fd))
        .map(|(_, end)| end)
}

/// The names and values of the lines `STAT NAME VALUE`.
fn rows(reply: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let lines = reply.split(|&byte| byte == b'\n');
    lines.filter_map(|line| {
        let row = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
        row.strip_prefix("STAT ")?.split_once(' ')
    })
}

/// Parses `tcp:127.0.0.1:4711` or `tcp6:[::1]:4711`. A server that listens to both kinds of addresses lists
/// `::ffff:127.0.0.1` for 127.0.0.1.
fn address(value: &str) -> Option<SocketAddr> {
    let text = value
        .strip_prefix("tcp:")
        .or_else(|| value.strip_prefix("tcp6:"))?;
    let address: SocketAddr = text.parse().ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_listed_and_listening_sockets_are_not() {
        let rows = [
            ("26:addr", "tcp:127.0.0.1:11211"),
            ("26:state", "conn_listening"),
            ("26:secs_since_last_cmd", "9"),
            ("28:addr", "tcp:127.0.0.1:45030"),
            ("28:listen_addr", "tcp:127.0.0.1:11211"),
            ("28:state", "conn_parse_cmd"),
            ("29:addr", "tcp6:[::ffff:10.0.0.1]:45031"),
            ("29:state", "conn_read"),
            ("30:addr", "tcp6:[::1]:45032"),
            ("30:state", "conn_read"),
            ("31:addr", "unix:/run/memcached.sock"),
            ("31:state", "conn_read"),
        ]
        .map(|(name, value)| format!("STAT {name} {value}\r\n"));
        let expected = ["127.0.0.1:45030", "10.0.0.1:45031", "[::1]:45032"];
        let expected = expected.map(|address| address.parse::<SocketAddr>().unwrap());
        let reply = format!("{}END\r\n", rows.concat());
        assert_eq!(Memcache::PLAIN.connections(reply.as_bytes()), expected.into());
        assert_eq!(Memcache::PLAIN.connection_count(reply.as_bytes()), 4);
    }

    #[test]
    fn introduction_of_an_old_or_silent_server_is_unfit() {
        let reply = b"STAT pid 7\r\nSTAT uptime 9\r\nSTAT version 1.6.18\r\nSTAT total_items 3\r\nEND\r\n";
        let life = Incarnation {
            pid: 7,
            uptime: Duration::from_secs(9),
        };
        let introduction = Introduction { life, stored: 3 };
        assert_eq!(Memcache::PLAIN.introduction(reply), Ok(introduction));
        let reply = b"STAT pid 7\r\nSTAT uptime 9\r\nSTAT version 1.6.18\r\nEND\r\n";
        assert_eq!(
            Memcache::PLAIN.introduction(reply),
            Err(Unfit::Unsaid("total_items"))
        );
        let reply = b"STAT pid 7\r\nSTAT uptime 9\r\nSTAT version 1.5.22\r\nEND\r\n";
        let unfit = Memcache::PLAIN.introduction(reply).unwrap_err();
        assert!(unfit.to_string().contains("1.5.22"), "{unfit}");
    }
}
