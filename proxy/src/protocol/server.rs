//! The end of a protocol at which its servers are: how the proxy logs in, what a server may be given, and how
//! its replies are read.

use proxima_wire::message::{Message, Parse, Parsed, Reply, Request};

use super::{Conversation, Login, Question};

/// What a protocol does at its servers: first what every protocol must say, then what has a default.
pub trait ServerSide: Send + Sync {
    /// Parses the next message from a server in answer to `command` (or [`UNASKED`](super::UNASKED)). `parse`
    /// holds what an earlier call noted about the beginning of these bytes, or about the part before them;
    /// otherwise it is new. The last message of a reply leaves it new. Only the last part of a reply may be
    /// larger than a shared lane takes; larger parts and pushes break the connection.
    fn reply(&self, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message>;

    /// A request that every healthy server answers and that changes nothing, with the number of its command.
    fn probe(&self) -> (u16, &'static [u8]);

    /// Takes one step of the proxy's login at a server. The first call, without bytes, comes when the lane is
    /// connected. By default the proxy does not log in.
    fn login(&self, _: &mut Conversation, _bytes: &[u8], _out: &mut Vec<u8>) -> Login {
        Login::Ready { used: 0 }
    }

    /// May a server whose login was [limited](Login::Limited) be given this command? By default it may.
    fn is_common(&self, _command: u16) -> bool {
        true
    }

    /// In which words does a server whose login was [limited](Login::Limited) close a connection for this
    /// request? `message` is the request, or the head of a streamed one. `None`: it answers it. By default it
    /// answers all.
    fn exceeds(&self, _: &Request, _message: &[u8]) -> Option<&'static [u8]> {
        None
    }

    /// Why a server that answers the [probe](Self::probe) like this may be given only [common
    /// commands](Self::is_common). `None`: it may be given all. By default every server may.
    fn limit(&self, _answer: &[u8]) -> Option<String> {
        None
    }

    /// A question by whose answer, if it is no error, a server proves that it knows the common commands that
    /// [need proof](Request::needs_proof); with the number of its command. By default there are none.
    fn proof(&self) -> Option<Question> {
        None
    }

    /// Does a complete reply end as its head said? If not, no later byte of this connection can be trusted.
    /// By default any end is valid: the length says all.
    #[inline]
    fn is_whole(&self, _: &Reply, _bytes: &[u8]) -> bool {
        true
    }

    /// Does the reply whose head begins `bytes` name another key than the one that was asked for? By default
    /// replies name no key.
    fn is_foreign(&self, _command: u16, _asked: &[u8], _bytes: &[u8]) -> bool {
        false
    }

    /// Parses an ordinary reply at the beginning of `bytes`: the last message to `command` for the key that
    /// was `asked` for, of at most `limit` bytes, complete, and with a valid end. One call replaces four. It
    /// is used only where no earlier call has noted anything about these bytes.
    #[inline]
    fn whole(&self, command: u16, asked: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
        match self.reply(&mut Parse::default(), command, bytes) {
            Parsed::Head(Message::Last(reply)) if reply.len() <= limit => {
                let whole = bytes.get(..reply.len() as usize)?;
                let is_good = self.is_whole(&reply, whole) && !self.is_foreign(command, asked, whole);
                is_good.then_some(reply)
            }
            _ => None,
        }
    }
}
