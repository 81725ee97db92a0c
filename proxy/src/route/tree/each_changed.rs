//! A request of several keys, or of several requests, as a wrap changes each of them.

use proxima_wire::message::{Outcome, Request};

use super::{Query, Wrap, Wrapped};
use crate::{protocol::Change, random::Random};

/// What a wrap has made of a request so far.
pub(in crate::route) struct EachChanged<'a> {
    pub(in crate::route) handle: &'a dyn Wrap,
    pub(in crate::route) changed: Vec<u8>,
    /// The wrap refuses the request.
    pub(in crate::route) fault: Option<(Outcome, String)>,
    /// The request can be changed as the wrap wants it.
    pub(in crate::route) is_possible: bool,
}

impl EachChanged<'_> {
    /// Appends this request as the wrap changes it.
    pub(in crate::route) fn change(
        &mut self,
        request: &Request,
        message: &[u8],
        query: &Query<'_>,
        random: &mut Random,
    ) {
        let (protocol, handle, out) = (query.protocol, self.handle, &mut self.changed);
        if request.key.is_empty() {
            return out.extend_from_slice(message);
        }
        let decided = match request.more_keys.is_empty() {
            true => handle.request(request, message, query, random),
            false => Wrapped::Each,
        };
        match decided {
            Wrapped::Ttl(ttl) => {
                let change = Change {
                    key: None,
                    ttl: Some(ttl),
                };
                self.is_possible &= protocol.rewrite(request, message, &change, out);
            }
            Wrapped::Key(_) | Wrapped::Each => {
                let mut fault = None;
                self.is_possible &= protocol.rewrite_keys(
                    request,
                    message,
                    &mut |key| {
                        let key = handle.new_key(key).unwrap_or_else(|| key.to_vec());
                        fault = fault.take().or(protocol.check_key(request, &key).err());
                        key
                    },
                    out,
                );
                if let Some(fault) = fault {
                    let text = format!("{}: invalid key: {fault}", handle.name());
                    self.fault.get_or_insert((Outcome::LocalError, text));
                }
            }
            Wrapped::Fail(outcome, text) => {
                self.fault.get_or_insert((outcome, text));
            }
            _ => out.extend_from_slice(message),
        }
    }
}
