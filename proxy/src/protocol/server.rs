//! A protocol's server side: the proxy's login, the requests that a server may be given, and how its replies
//! are read.

use std::time::Duration;

use proxima_wire::message::{Message, Parse, Parsed, Reply, Request};

use super::{Login, Outgoing, Question, ServerLogin, Session, StateSlot, WriteResult};

/// A protocol's server side: first the methods that every protocol must have, then those with a default.
pub trait ServerSide: Send + Sync {
    /// Parses the next message from a server in answer to `command` (or [`UNASKED`](super::UNASKED)). `parse`
    /// holds what an earlier call noted about the beginning of these bytes, or about the part before them;
    /// otherwise it is new. The last message of a reply leaves it new. A part of any size is passed on as it
    /// comes; what was noted before it is there behind it. Pushes that are larger than a client may have
    /// buffered break the connection. `lane`: what the codec has kept for this connection since its login.
    fn reply(&self, lane: &StateSlot, parse: &mut Parse, command: u16, bytes: &[u8]) -> Parsed<Message>;

    /// A request that every healthy server answers and that changes nothing, with the number of its command.
    fn probe(&self) -> (u16, &'static [u8]);

    /// Takes one step of the proxy's login at a server. The first call, without bytes, comes when the lane is
    /// connected. `_lane` keeps what a later step needs, and, beyond the login, what the codec has agreed on
    /// with the server. By default the proxy does not log in.
    fn login(
        &self,
        _lane: &mut StateSlot,
        _: &mut ServerLogin<'_>,
        _bytes: &[u8],
        _out: &mut Vec<u8>,
    ) -> Login {
        Login::Ready { used: 0 }
    }

    /// Does the codec [write](Self::write) each request for the lane on which it leaves, and
    /// [finish](Self::finish) each reply? A lane is given its requests only after its login then, and no
    /// request is sent again when the connection is lost. By default requests leave as they are.
    fn fits_requests(&self) -> bool {
        false
    }

    /// Writes a request for this lane, which has logged in: with the numbers that the server knows here, and
    /// behind those that have to go before it. `_session`: that of the client that the request is for, or a
    /// new one. `_message`: the request, or the head of a streamed one. What goes before it may have to be
    /// answered first ([`WriteResult::Waits`]): then this is called once more, as soon as
    /// [`finish`](Self::finish) has seen the last of those replies. Called only where the codec [fits
    /// requests](Self::fits_requests). By default the request leaves as it is.
    fn write(
        &self,
        _lane: &mut StateSlot,
        _session: &Session,
        _: &Request,
        message: &[u8],
        out: &mut Outgoing<'_>,
    ) -> WriteResult {
        out.request().extend_from_slice(message);
        WriteResult::Whole
    }

    /// Sees a complete reply, or the head or last part of a large one, or a part that has a
    /// [trailer](Reply::trailer) and has come whole: what it says about the state of the lane, and what its
    /// client is to read in its place. `_command`: that of the request, or of one that went
    /// [before](Outgoing::ask_before) it. Returns the reply in place of this one, which was appended to
    /// `_out`: routes go by its outcome. `None` if the reply stays as it is. What stands in place of a head
    /// is ignored. Called only where the codec [fits requests](Self::fits_requests).
    fn finish(
        &self,
        _lane: &mut StateSlot,
        _session: &Session,
        _command: u16,
        _: &Reply,
        _bytes: &[u8],
        _out: &mut Vec<u8>,
    ) -> Option<Reply> {
        None
    }

    /// The fit of an idle lane for this session: the lane with the highest number is taken. Where it is
    /// [`BEST`](super::BEST), no other one is looked at. By default all are alike, and the one that was used
    /// last is taken.
    fn suits(&self, _lane: &StateSlot, _session: &Session) -> u32 {
        0
    }

    /// Appends a request, for another connection with the same login, by which the server ends what it does
    /// on this lane, and returns the number of its command. It is also sent when the lane of a client that
    /// has left, or that was late, is closed while its server works. `None`: the server cannot be asked for
    /// that, as by default.
    fn cancel(&self, _lane: &StateSlot, _out: &mut Vec<u8>) -> Option<u16> {
        None
    }

    /// The number by which the server knows the connection, for operators. `None`: the server has told none,
    /// or the protocol has no such numbers, as by default.
    fn connection_number(&self, _lane: &StateSlot) -> Option<u64> {
        None
    }

    /// May a client with the login `by` end what the server does for one with the login `of`? Both are in the
    /// codec's words. By default only if they are the same.
    fn may_cancel(&self, by: &[u8], of: &[u8]) -> bool {
        by == of
    }

    /// Appends a request after which the server keeps nothing of its last client, and returns the number of
    /// its command; it has a reply, and an error closes the lane. `None`: there is no such request, as by
    /// default, and a lane that needs it is closed.
    fn reset(&self, _lane: &mut StateSlot, _out: &mut Vec<u8>) -> Option<u16> {
        None
    }

    /// The request with which the proxy leaves a server on a connection on which nothing is under way; it has no
    /// reply. Empty: the connection is just closed, as by default.
    fn farewell(&self) -> &'static [u8] {
        b""
    }

    /// The longest time for which an idle lane may rest before its server closes it. `None`: the server has
    /// told none, as by default.
    fn idle_limit(&self, _lane: &StateSlot) -> Option<Duration> {
        None
    }

    /// The most dedicated lanes to a server that has not [told](ServerLogin::connections) yet how many it
    /// takes. By default there is no limit but that of the configuration.
    fn room_until_told(&self) -> u32 {
        u32::MAX
    }

    /// May a server whose login was [limited](Login::Limited) be given this command? By default it may.
    fn is_common(&self, _command: u16) -> bool {
        true
    }

    /// In which words does a server whose login was [limited](Login::Limited) close a connection for this
    /// request? `message` is the request, or the head of a streamed one. `None` if it answers the request. By
    /// default it answers all.
    fn exceeds(&self, _: &Request, _message: &[u8]) -> Option<&'static [u8]> {
        None
    }

    /// The reason why a server that answers the [probe](Self::probe) like this may be given only [common
    /// commands](Self::is_common). `None` if it may be given all, as every server may by default.
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
    fn whole(&self, lane: &StateSlot, command: u16, asked: &[u8], bytes: &[u8], limit: u64) -> Option<Reply> {
        match self.reply(lane, &mut Parse::default(), command, bytes) {
            Parsed::Head(Message::Last(reply)) if reply.len() <= limit => {
                let whole = bytes.get(..reply.len() as usize)?;
                let is_good = self.is_whole(&reply, whole) && !self.is_foreign(command, asked, whole);
                is_good.then_some(reply)
            }
            _ => None,
        }
    }
}
