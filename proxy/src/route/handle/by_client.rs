//! by_client: one child for each address of a client, chosen as by mcrouter's OriginalClientHashRoute. The
//! worker looks the address up, because a walk does not carry it.

use std::{io::Write, net::IpAddr};

use proxima_wire::hash::spooky64;

use crate::{
    config::routes::{self, Spec},
    route::{
        compile::{Build, CompileError, Maker},
        tree::{ByAddress, Leaf, Node, NodeId},
    },
};

/// The route `by_client`.
#[derive(Debug)]
pub(in crate::route) struct ByClient {
    /// A number that is added to the hash, so that two such routes do not choose alike.
    pub(in crate::route) offset: u64,
}

/// Bytes of the longest address as text.
const LONGEST: usize = 39;

impl ByClient {
    /// The error text for a client without an address.
    pub(in crate::route) const UNKNOWN: &'static str = "Missing IP";
}

impl ByAddress for ByClient {
    fn name(&self) -> &'static str {
        routes::ByClient::NAME
    }

    fn choose(&self, address: Option<IpAddr>, children: usize) -> usize {
        let Some(address) = address else {
            return children;
        };
        let mut text = [0; LONGEST];
        let mut rest = &mut text[..];
        // Every address fits.
        let _ = write!(rest, "{}", address.to_canonical());
        let length = LONGEST - rest.len();
        let hash = spooky64(&text[..length], 0).wrapping_add(self.offset);
        (hash % children.max(1) as u64) as usize
    }

    fn why(&self, address: Option<IpAddr>) -> String {
        match address {
            Some(address) => format!("client {address}"),
            None => "the client has no address".into(),
        }
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::ByClient {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let children = maker.children(children)?;
        Ok(match children[..] {
            [] => maker.push(Node::Leaf(Leaf::Null)),
            [only] => only,
            _ => maker.push(Node::ByClient {
                handle: Box::new(ByClient { offset: self.offset }),
                children,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_always_has_the_same_child_and_the_offset_moves_it() {
        let route = ByClient { offset: 0 };
        let next = ByClient { offset: 1 };
        let mut seen = [0; 4];
        for last in 0..=255 {
            let address: IpAddr = [10, 0, 0, last].into();
            let mapped = format!("::ffff:{address}").parse().unwrap();
            let chosen = route.choose(Some(address), 4);
            assert_eq!(route.choose(Some(mapped), 4), chosen, "{mapped}");
            assert_eq!(next.choose(Some(address), 4), (chosen + 1) % 4, "{address}");
            assert_eq!(chosen as u64, spooky64(address.to_string().as_bytes(), 0) % 4);
            seen[chosen] += 1;
        }
        assert!(seen.iter().all(|&clients| clients > 32), "{seen:?}");
        assert_eq!(route.choose(None, 4), 4);
    }
}
