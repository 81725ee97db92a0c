//! Auto discovery as ElastiCache does it: a numbered list of the nodes of a cluster, which a client gets from
//! one of them.
//!
//! The text is the number of the list, and then its nodes:
//!
//! ```text
//! 12\n
//! a.cache.example|10.0.0.1|11211 b.cache.example||11211\n
//! ```

mod node;
mod reply;

use std::collections::HashSet;

pub use self::{
    node::{BadNode, Node},
    reply::{BadReply, LONGEST, Reply, answer, read},
};
use crate::config::schema::Server;

/// The highest version of a list. Clients read it as a number of 32 bits.
pub const HIGHEST_VERSION: u64 = i32::MAX as u64;
/// More nodes than any real cluster has.
const LIMIT: usize = 10_000;

/// A list of nodes with its number. The nodes are sorted: their order in an answer means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeList {
    /// The number, which rises with each change.
    pub version: u64,
    nodes: Vec<Node>,
}

/// Why a text is no list. The whole list is refused for one bad node.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadList {
    #[error("its list is not text")]
    NoText,
    #[error("the version of its list is no number")]
    Version,
    #[error("the version of its list is above {HIGHEST_VERSION}")]
    HighVersion,
    #[error("its list names no node")]
    Empty,
    #[error("its list has more than {LIMIT} nodes")]
    TooMany,
    #[error("its list goes on behind the nodes")]
    MoreLines,
    #[error("its list names `{0}` twice")]
    Repeated(String),
    #[error("`{node}` in its list is no node: {why}")]
    Node { node: String, why: BadNode },
}

impl NodeList {
    /// A list of these nodes. `None` if there is no node, or there are too many, or two share a name.
    pub fn new(version: u64, nodes: Vec<Node>) -> Option<Self> {
        Self::checked(version, nodes).ok()
    }

    fn checked(version: u64, mut nodes: Vec<Node>) -> Result<Self, BadList> {
        nodes.sort();
        let mut names = HashSet::new();
        if let Some(twice) = nodes.iter().find(|node| !names.insert(node.name())) {
            return Err(BadList::Repeated(twice.name()));
        }
        match nodes.len() {
            0 => Err(BadList::Empty),
            1..=LIMIT => Ok(Self { version, nodes }),
            _ => Err(BadList::TooMany),
        }
    }

    /// Reads the text of a list.
    ///
    /// # Errors
    /// The text is no list, in part or as a whole.
    pub fn parse(text: &[u8]) -> Result<Self, BadList> {
        let text = std::str::from_utf8(text).map_err(|_| BadList::NoText)?;
        let mut lines = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line));
        let version = lines.next().and_then(number).ok_or(BadList::Version)?;
        // No other version could follow this one: every true list would be ignored for ever.
        if version > HIGHEST_VERSION {
            return Err(BadList::HighVersion);
        }
        let words = lines.next().unwrap_or_default().split_ascii_whitespace();
        let mut nodes = Vec::new();
        for word in words {
            if nodes.len() == LIMIT {
                return Err(BadList::TooMany);
            }
            let bad = |why| BadList::Node {
                node: word.chars().take(80).flat_map(char::escape_default).collect(),
                why,
            };
            nodes.push(Node::parse(word).map_err(bad)?);
        }
        match lines.all(str::is_empty) {
            true => Self::checked(version, nodes),
            false => Err(BadList::MoreLines),
        }
    }

    /// The text of the list.
    pub fn text(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(Node::to_string).collect();
        format!("{}\n{}\n", self.version, nodes.join(" "))
    }

    /// The nodes: at least one, each once, always in the same order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes as servers of a pool.
    pub fn servers(&self) -> Vec<Server> {
        self.nodes.iter().map(Node::server).collect()
    }

    /// Whether both lists have nodes of the same names, wherever these are.
    pub fn has_same_names(&self, other: &Self) -> bool {
        let names = |list: &Self| list.nodes.iter().map(Node::name).collect::<HashSet<_>>();
        names(self) == names(other)
    }

    /// Whether no node is in both lists.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        !self
            .nodes
            .iter()
            .any(|node| other.nodes.binary_search(node).is_ok())
    }
}

/// A number of digits alone.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read_whatever_its_order_and_written_sorted() {
        let text = b"12\nb.x||11212 a.x|10.0.0.1|11211\n";
        let list = NodeList::parse(text).unwrap();
        assert_eq!(list.version, 12);
        assert_eq!(list.text(), "12\na.x|10.0.0.1|11211 b.x||11212\n");
        assert_eq!(NodeList::parse(list.text().as_bytes()), Ok(list.clone()));
        assert_eq!(NodeList::parse(b"12\r\na.x|10.0.0.1|11211 b.x||11212"), Ok(list));
    }

    #[test]
    fn servers_are_known_by_their_host_and_found_at_their_ip() {
        let list = NodeList::parse(b"1\na|10.0.0.1|11211 b||11211 c|::1|2 d||3").unwrap();
        let servers = list.servers();
        let found: Vec<_> = servers
            .iter()
            .map(|server| (server.name.as_deref().unwrap(), &*server.address))
            .collect();
        // As ketama names a server that is written `host:port`.
        let expected = [
            ("a", "10.0.0.1:11211"),
            ("b", "b:11211"),
            ("c:2", "[::1]:2"),
            ("d:3", "d:3"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn bad_list_is_refused_as_a_whole() {
        let many = vec!["a||1"; LIMIT + 1].join(" ");
        let rows = [
            ("", "the version of its list is no number"),
            ("x\na||1", "the version of its list is no number"),
            ("-1\na||1", "the version of its list is no number"),
            ("+1\na||1", "the version of its list is no number"),
            (
                "99999999999999999999\na||1",
                "the version of its list is no number",
            ),
            ("2147483648\na||1", "the version of its list is above 2147483647"),
            (
                "18446744073709551615\na||1",
                "the version of its list is above 2147483647",
            ),
            ("1", "its list names no node"),
            ("1\n\n", "its list names no node"),
            ("1\n\na||1\n", "its list goes on behind the nodes"),
            ("1\na||1\nb||1\n", "its list goes on behind the nodes"),
            ("1\na||1 a||1", "its list names `a:1` twice"),
            ("1\na|10.0.0.1|1 a|10.0.0.2|1", "its list names `a:1` twice"),
            (&format!("1\n{many}"), "its list has more than 10000 nodes"),
            (
                "1\na||1 b||112110",
                "`b||112110` in its list is no node: the port is not a number from 1 to 65535",
            ),
        ];
        let mut wrong = Vec::new();
        for (text, message) in rows {
            let refused = NodeList::parse(text.as_bytes()).map_err(|error| error.to_string());
            if refused.as_ref().err().map(String::as_str) != Some(message) {
                wrong.push((text.chars().take(40).collect::<String>(), refused));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(NodeList::parse(b"1\n\xff||1"), Err(BadList::NoText));
    }

    #[test]
    fn lists_are_compared_by_nodes_and_by_names() {
        let list = |text: &str| NodeList::parse(text.as_bytes()).unwrap();
        let known = list("5\na|10.0.0.1|1 b|10.0.0.2|1");
        let moved = list("5\na|10.0.0.3|1 b|10.0.0.2|1");
        assert!(known.has_same_names(&moved) && !known.is_apart_from(&moved));
        let other = list("1\na|10.0.0.8|1 b|10.0.0.9|1");
        assert!(known.has_same_names(&other) && known.is_apart_from(&other));
        assert!(!known.has_same_names(&list("5\na|10.0.0.1|1")));
    }
}
