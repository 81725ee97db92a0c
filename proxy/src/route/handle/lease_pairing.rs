//! lease_pairing: a miss that a failover's other child has answered is filled where its token comes from. The
//! client gets a token that stands for the child's and the child's place. Child 0 is the failover; the others are
//! its children.

use std::sync::Arc;

use proxima_wire::{hash::spooky64, memcache::lease};

use crate::route::{
    Answer,
    lease_table::{LeaseTable, LeaseToken},
    tree::{Begin, Give, Run, Script, ScriptRequest, Sent, Turn},
};

/// Bits of [`LeaseToken::whose`] that say which child gave the token; the rest is the route's.
const CHILD: u64 = 0xffff;

/// Sends what fills a miss to the child whose token it has.
#[derive(Debug)]
pub(in crate::route) struct LeasePairing {
    /// What tells the route's leases from others'; the lowest bits are 0.
    pub(in crate::route) route: u64,
    pub(in crate::route) table: Arc<LeaseTable>,
}

/// Exchanges the tokens that one child gives.
#[derive(Debug)]
pub(in crate::route) struct LeaseExchange {
    pub(in crate::route) whose: u64,
    pub(in crate::route) table: Arc<LeaseTable>,
}

/// The tag of the lease for this key that a client has by this token. A token is of no use for another key.
fn tag(token: u64, key: &[u8]) -> u64 {
    spooky64(key, token)
}

impl LeasePairing {
    /// What tells the leases of the route with this name from others'.
    pub(in crate::route) fn route(name: &str) -> u64 {
        spooky64(name.as_bytes(), 0) & !CHILD
    }

    /// The exchange for the tokens of this child of the failover.
    pub(in crate::route) fn exchange(&self, child: usize) -> LeaseExchange {
        LeaseExchange {
            whose: self.route | child as u64 & CHILD,
            table: Arc::clone(&self.table),
        }
    }
}

impl Script for LeasePairing {
    fn name(&self) -> &'static str {
        "lease_pairing"
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        let token = (asked.command == "lease-set").then(|| lease::token(asked.message));
        let Some((token, place)) = token
            .flatten()
            .filter(|(token, _)| LeaseTable::may_be_made(*token))
        else {
            return Begin::Pass(0);
        };
        let Some(lease) = self
            .table
            .take(tag(token, asked.key), |lease| lease.whose & !CHILD == self.route)
        else {
            return Begin::Pass(0);
        };
        let head = asked.message.get(..asked.request.head as usize);
        let mut changed = Vec::new();
        lease::with_token(head.unwrap_or_default(), place, lease.token, &mut changed);
        let child = 1 + (lease.whose & CHILD) as usize;
        Begin::Send(vec![Sent {
            child,
            head: Some(changed),
        }])
    }

    fn why(&self) -> String {
        "a miss is filled where its token comes from".into()
    }
}

impl Script for LeaseExchange {
    fn name(&self) -> &'static str {
        "lease_exchange"
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        if asked.command != "lease-get" {
            return Begin::Pass(0);
        }
        let run = Exchange {
            whose: self.whose,
            table: Arc::clone(&self.table),
        };
        Begin::Run(Box::new(run), Turn::own(0, 0))
    }

    fn why(&self) -> String {
        "tokens are exchanged for such that tell where they come from".into()
    }
}

struct Exchange {
    whose: u64,
    table: Arc<LeaseTable>,
}

impl Run for Exchange {
    fn next(&mut self, asked: &ScriptRequest<'_>, _: u32, answer: &Answer<'_>) -> Turn {
        let bytes = answer.bytes();
        // The token 0 is none.
        let Some((token, place)) = lease::token(bytes).filter(|(token, _)| *token > 0) else {
            return Turn::give(Give::This);
        };
        let own = self.table.new_token();
        let whose = self.whose;
        self.table.put(tag(own, asked.key), LeaseToken { token, whose });
        let mut changed = Vec::with_capacity(bytes.len() + 20);
        lease::with_token(bytes, place, own, &mut changed);
        Turn::give(Give::Made(changed))
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::{memcache::Command, message::Parsed};

    use super::*;
    use crate::{micros::Micros, protocol::Requests, protocols::Memcache};

    #[test]
    fn a_token_that_was_exchanged_leads_to_its_child_once() {
        let table: Arc<LeaseTable> = Arc::default();
        let route = |name| LeasePairing {
            route: LeasePairing::route(name),
            table: Arc::clone(&table),
        };
        let (own, other) = (route("own"), route("other"));
        let given = table.new_token();
        let exchange = own.exchange(2);
        table.put(
            tag(given, b"k"),
            LeaseToken {
                token: 7,
                whose: exchange.whose,
            },
        );
        let sent = |route: &LeasePairing, text: &str| {
            let Parsed::Head(request) = Memcache::PLAIN.head(text.as_bytes()) else {
                panic!("{text:?}")
            };
            let asked = ScriptRequest {
                request: &request,
                message: text.as_bytes(),
                command: Command::from_number(request.command).map_or("", Command::name),
                key: request.key.of(text.as_bytes()),
                unix: Micros::ZERO,
                largest: 0,
                chance: 0,
            };
            match route.begin(&asked) {
                Begin::Pass(child) => (child, None),
                Begin::Send(mut sent) => {
                    let Sent { child, head } = sent.remove(0);
                    (child, head.map(|head| String::from_utf8(head).unwrap()))
                }
                Begin::Run(..) | Begin::Fail(..) => panic!("{text:?}"),
            }
        };
        let fills = format!("lease-set k {given} 3 0 1\r\nx\r\n");
        assert_eq!(sent(&own, "lease-set k 7 3 0 1\r\nx\r\n"), (0, None));
        assert_eq!(sent(&own, "set k 0 0 1\r\nx\r\n"), (0, None));
        assert_eq!(sent(&other, &fills), (0, None));
        assert_eq!(sent(&own, &fills.replace(" k ", " other ")), (0, None));
        assert_eq!(sent(&own, &fills), (3, Some("lease-set k 7 3 0 1\r\n".into())));
        assert_eq!(sent(&own, &fills), (0, None));
    }
}
