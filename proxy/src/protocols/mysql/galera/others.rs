//! Other proxies before the same servers. Their writes are not on the clock of this process.
//!
//! At each server a proxy takes a lock by name, which costs no privilege. A proxy that finds it taken is not
//! alone, and takes a second lock, by which the holder of the first finds out. A lock ends with its
//! connection; the connection of a proxy that has vanished ends when the server has heard nothing of it for
//! [ten seconds](ASK).

use super::super::pairs::each_pair;
use crate::protocol::OtherProxies;

/// The statement that asks a server for other proxies. The holder of the first lock gives the second one
/// back, if it has that from before, and is told whether another connection has it. A lock that is taken again
/// would have to be given back as often: so it is not.
pub(super) const ASK: &[u8] = b"SET SESSION wait_timeout = 10; SELECT 'others', \
    IF(IF(IS_USED_LOCK('proxima.first') <=> CONNECTION_ID(), 1, GET_LOCK('proxima.first', 0)) = 1, \
    RELEASE_LOCK('proxima.second') <=> 0, \
    1 + COALESCE(IF(IS_USED_LOCK('proxima.second') <=> CONNECTION_ID(), 1, GET_LOCK('proxima.second', 0)), 0))";

/// The answer of the server at `address`.
pub(super) fn read(address: &str, reply: &[u8]) -> OtherProxies {
    let mut found = OtherProxies::Unknown(format!("{address} answers nonsense"));
    each_pair(reply, |name, value| {
        if name == b"others" {
            found = match value {
                b"0" => OtherProxies::None,
                _ => OtherProxies::Seen(address.to_owned()),
            };
        }
    });
    found
}

/// What is known of all of these servers together: one that sees another proxy is enough.
pub(super) fn together(servers: impl Iterator<Item = OtherProxies>) -> OtherProxies {
    let mut all = None;
    for one in servers {
        all = match (all, one) {
            (Some(OtherProxies::Seen(seen)), _) => Some(OtherProxies::Seen(seen)),
            (Some(before), OtherProxies::None) => Some(before),
            (_, one) => Some(one),
        };
    }
    all.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_that_sees_another_proxy_is_enough() {
        let seen = || OtherProxies::Seen("a:3306".into());
        let unknown = || OtherProxies::Unknown("late".into());
        let cases = [
            (vec![], OtherProxies::default()),
            (vec![OtherProxies::None, OtherProxies::None], OtherProxies::None),
            (vec![OtherProxies::None, unknown()], unknown()),
            (vec![unknown(), OtherProxies::None], unknown()),
            (vec![unknown(), seen(), OtherProxies::None], seen()),
            (vec![seen(), unknown()], seen()),
        ];
        for (servers, all) in cases {
            assert_eq!(together(servers.iter().cloned()), all, "{servers:?}");
        }
    }
}
