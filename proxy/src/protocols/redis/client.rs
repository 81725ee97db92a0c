//! The client side of Redis.

use proxima_wire::{
    message::{Class, Outcome, Reply, Request},
    resp::{self, Args, Command, DECLARED, Handling, INLINE, TRANSACTION},
};

use super::{
    PATTERN, Redis, about_client, access, append_error, declared, embedded, here, info, scan, sessions,
    state, twemproxy,
};
use crate::{
    protocol::{
        Admission, AdmissionContext, ClientSide, ConnectionFacts, Control, Declared, Failed, Plan,
        ProcessCounters, Replier, ReplyStyle, Session,
    },
    protocols::errors::twemproxys_text,
};

impl ClientSide for Redis {
    fn error(&self, _: &Session, failed: &Failed<'_>, out: &mut Vec<u8>) {
        match self.reply_style {
            ReplyStyle::Own | ReplyStyle::Mcrouter { .. } => append_error(&format!("ERR {failed}"), out),
            ReplyStyle::Twemproxy { .. } => twemproxy::error(&twemproxys_text(failed), out),
        }
    }

    fn failure(&self, session: &Session, command: u16, failed: &Failed<'_>, out: &mut Vec<u8>) {
        (0..resp::replies(command)).for_each(|_| self.error(session, failed, out));
    }

    fn resolve(
        &self,
        session: &Session,
        declared: Declared<'_>,
        request: &Request,
        message: &[u8],
    ) -> Option<Request> {
        match request.command {
            TRANSACTION.. => sessions::first_of_nested(session, request, message),
            _ => declared::resolve(declared.commands, request, message),
        }
    }

    fn library<'a>(&self, session: &'a Session) -> &'a [u8] {
        state::note(session, state::LIBRARY)
    }

    fn plan(&self, session: &mut Session, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Plan {
        if request.command == INLINE {
            let line = message.strip_suffix(b"\n").unwrap_or(message);
            // The codec has counted the words, so that the quotes are known to be balanced.
            return match resp::inline::append_array(line, out) {
                true => Plan::Instead,
                false => Plan::Close,
            };
        }
        if let ReplyStyle::Twemproxy { all_commands } = self.reply_style
            && let Some(plan) = twemproxy::plan(session, request, message, all_commands, out)
        {
            return plan;
        }
        if (state::is(session, state::ANY) || session.has_subscriptions)
            && let Some(plan) = sessions::plan(session, request, message, self.reply_style, out)
        {
            return plan;
        }
        if session.is_embedded {
            return embedded::plan(session, request, message, out);
        }
        if request.command >= TRANSACTION {
            return Plan::Spread { is_divisible: false };
        }
        if request.command == DECLARED {
            return declared::plan(request, message, out);
        }
        let mut args = Args::of(message);
        let count = args.left();
        let command = Command::of(request.command).filter(|command| command.takes(count));
        let Some(command) = command.filter(|command| command.served != Handling::Container) else {
            here::reject_form(request.command, &mut args, message, out);
            return Plan::Answer;
        };
        match command.served {
            Handling::Transaction | Handling::Channels => sessions::begin(session, command, out),
            Handling::Key if request.extra_timeout > 0 => sessions::begin(session, command, out),
            Handling::Here => here::answer(session, command, message, out),
            // The codec has found that a pattern names keys.
            Handling::Pattern if request.class == Class::Session => {
                append_error(PATTERN, out);
                Plan::Alone
            }
            Handling::Key | Handling::Pattern | Handling::Split(_) if !request.more_keys.is_empty() => {
                let is_divisible = matches!(command.served, Handling::Split(_));
                Plan::Spread { is_divisible }
            }
            Handling::Key | Handling::Pattern | Handling::Split(_) | Handling::Channel => Plan::Route,
            Handling::Each(_) | Handling::Any => Plan::Everywhere,
            // The cursors are the server's own.
            Handling::Walk if session.reach.is_one => Plan::Everywhere,
            Handling::Walk => Plan::Visit,
            Handling::Alone if command.name == "info" && info::is_about_near(message) => {
                match session.is_idle {
                    true => Plan::Consult,
                    false => Plan::Later,
                }
            }
            Handling::Alone if command.name == "info" && !session.reach.is_one => Plan::Counters,
            Handling::Alone => {
                here::instead_of_one(session, command, message, out);
                Plan::Alone
            }
            Handling::Own if here::is_off(command, message) => {
                out.extend_from_slice(b"+OK\r\n");
                Plan::Answer
            }
            Handling::Own if session.reach.is_one => sessions::own(session),
            Handling::Own | Handling::Refused | Handling::Container => {
                let name = command.name.replace('|', " ").to_uppercase();
                append_error(&format!("ERR {name} is not served: {}", command.reason), out);
                Plan::Answer
            }
        }
    }

    fn consulted(&self, _: &[u8], process: &dyn Control, out: &mut Vec<u8>) {
        info::about_near(&process.near(), out);
    }

    fn counters(&self, session: &Session, message: &[u8], counters: &ProcessCounters, out: &mut Vec<u8>) {
        info::answer(session, message, counters, out);
    }

    fn connection(&self, session: &Session, message: &[u8], facts: &ConnectionFacts, out: &mut Vec<u8>) {
        about_client::answer(session, message, facts, out);
    }

    fn error_of_part(&self, outcome: Outcome) -> Option<&'static [u8]> {
        match self.reply_style {
            ReplyStyle::Own | ReplyStyle::Mcrouter { .. } => None,
            ReplyStyle::Twemproxy { .. } => twemproxy::error_of_part(outcome),
        }
    }

    fn rejected(&self, session: &mut Session, command: u16, has_lane: bool) -> bool {
        sessions::rejected(session, command, has_lane);
        true
    }

    fn visit(&self, message: &[u8], numbers: &[u16], out: &mut Vec<u8>) -> Option<usize> {
        scan::visit(message, numbers, out)
    }

    fn apart(
        &self,
        session: &mut Session,
        request: &Request,
        message: &[u8],
        [(key, server), (other, elsewhere)]: [(&[u8], &str); 2],
        out: &mut Vec<u8>,
    ) -> bool {
        let shown = |key: &[u8]| String::from_utf8_lossy(&key[..key.len().min(64)]).into_owned();
        let text = format!(
            "CROSSSLOT '{}' is at {server} and '{}' at {elsewhere}: a hash tag (hash.tag) keeps keys together",
            shown(key),
            shown(other)
        );
        if request.command < TRANSACTION {
            sessions::doom(session);
            append_error(&text, out);
            return true;
        }
        sessions::abandon(session);
        out.extend_from_slice(b"+OK\r\n");
        resp::commands(message).for_each(|_| append_error(&text, out));
        append_error(sessions::ABORTED, out);
        true
    }

    fn answered(&self, session: &mut Session, _: &Replier<'_>, command: u16, reply: &Reply, _: &[u8]) {
        sessions::answered(session, command, reply.outcome.is_error());
    }

    fn admit(&self, session: &mut Session, _: &AdmissionContext<'_>, _: &[u8], _: &mut Vec<u8>) -> Admission {
        access::begin(session);
        Admission::Ready { used: 0 }
    }
}
