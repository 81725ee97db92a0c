//! Finds out whether the nodes of a list are gone.

use std::{io, time::Duration};

use tokio::{task::JoinSet, time::timeout};

use super::{Resolve, connect::connect};
use crate::members::discovery::Node;

/// Time in which all of them must be seen to be gone. Otherwise they count as there.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Nodes that are tried at the same time.
const AT_ONCE: usize = 64;

/// Whether none of these nodes accepts a connection: each one refuses it, or does not answer. A name that
/// cannot be looked up says nothing of its node, which then counts as there.
pub(super) async fn are_gone(nodes: &[Node], resolve: &impl Resolve) -> bool {
    let all = async {
        for some in nodes.chunks(AT_ONCE) {
            let mut tried = JoinSet::new();
            for node in some {
                let found = match node.ip() {
                    Some(ip) => Some(vec![ip]),
                    None => match resolve.resolve(node.host()).await {
                        Ok(found) => found,
                        Err(_) => return false,
                    },
                };
                for ip in found.into_iter().flatten() {
                    tried.spawn(connect((ip, node.port()).into()));
                }
            }
            while let Some(result) = tried.join_next().await {
                if !matches!(result, Ok(Err(error)) if is_gone(&error)) {
                    return false;
                }
            }
        }
        true
    };
    timeout(TIMEOUT, all).await.unwrap_or(false)
}

/// Whether this failure to connect is the node's. All others are this host's, which may lack descriptors,
/// ports or a way to the node.
fn is_gone(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::TimedOut
    )
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener};

    use super::*;
    use crate::members::discovery::NodeList;

    struct Names;

    impl Resolve for Names {
        async fn resolve(&self, host: &str) -> Result<Option<Vec<IpAddr>>, String> {
            match host {
                "here" => Ok(Some(vec![IpAddr::from([127, 0, 0, 1])])),
                "nowhere" => Ok(None),
                _ => Err("late".to_owned()),
            }
        }
    }

    #[tokio::test]
    async fn nodes_are_gone_when_none_accepts_and_every_name_is_answered() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = open.local_addr().unwrap().port();
        let closed = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        for (nodes, gone) in [
            (format!("a|127.0.0.1|{closed}"), true),
            (format!("a|127.0.0.1|{closed} b|127.0.0.1|{port}"), false),
            (format!("here||{closed} nowhere||{port}"), true),
            (format!("here||{port}"), false),
            (format!("unknown||{closed}"), false),
        ] {
            let list = NodeList::parse(format!("1\n{nodes}").as_bytes()).unwrap();
            assert_eq!(are_gone(list.nodes(), &Names).await, gone, "{nodes}");
        }
    }

    #[test]
    fn failure_of_this_host_says_nothing_of_a_node() {
        for (failure, gone) in [
            (libc::ECONNREFUSED, true),
            (libc::ETIMEDOUT, true),
            (libc::EMFILE, false),
            (libc::ENFILE, false),
            (libc::ENOBUFS, false),
            (libc::EADDRNOTAVAIL, false),
            (libc::ENETUNREACH, false),
            (libc::EHOSTUNREACH, false),
        ] {
            let failure = io::Error::from_raw_os_error(failure);
            assert_eq!(is_gone(&failure), gone, "{failure}");
        }
    }
}
