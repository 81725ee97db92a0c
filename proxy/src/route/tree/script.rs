//! The contract of requests that are served in several steps.

use proxima_wire::message::{Outcome, Request};

use crate::{
    micros::Micros,
    route::{Answer, Answers},
};

/// Serves a request in several steps, each of which may ask a child for something else.
pub trait Script: Send {
    /// The name of the route, as in the configuration.
    fn name(&self) -> &'static str;
    /// Decides how a request begins. Its message is whole.
    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin;
    /// Does it look at the values of requests? They are held whole then.
    fn needs_values(&self) -> bool {
        false
    }
    /// The steps, for people.
    fn why(&self) -> String;
}

/// A request, as a script sees it.
#[derive(Clone, Copy)]
pub struct ScriptRequest<'a> {
    /// The parsed request.
    pub request: &'a Request,
    /// Its bytes.
    pub message: &'a [u8],
    /// The name of its command.
    pub command: &'static str,
    /// Its key as the server will see it.
    pub key: &'a [u8],
    /// The present time, since 1970.
    pub unix: Micros,
    /// Bytes of the largest value that a client may store.
    pub largest: usize,
    /// A random number.
    pub chance: u64,
}

/// How a script begins.
pub enum Begin {
    /// The request goes on to this child.
    Pass(usize),
    /// The request goes to these children. The reply of the first one is the answer.
    Send(Vec<Sent>),
    /// The request is served in steps.
    Run(Box<dyn Run>, Turn),
    /// The request gets this error.
    Fail(Outcome, &'static str),
}

impl Begin {
    /// The request goes to both children as it is, and the first one answers.
    pub fn copy(first: usize, other: usize) -> Self {
        let sent = [first, other].map(|child| Sent { child, head: None });
        Self::Send(sent.into())
    }
}

/// A request as a child gets it.
pub struct Sent {
    /// The child.
    pub child: usize,
    /// The head of the request; `None`: the client's own.
    pub head: Option<Vec<u8>>,
}

/// The state of one request that is served in steps.
pub trait Run {
    /// The next step, after this answer to what was asked under this number.
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn;
    /// Bytes of values that it keeps.
    fn memory_bytes(&self) -> usize {
        0
    }
}

/// A step.
#[derive(Default)]
pub struct Turn {
    /// What the client gets; `None`: nothing yet, or nothing more.
    pub give: Option<Give>,
    /// What is asked next.
    pub asks: Vec<Ask>,
}

impl Turn {
    /// Asks this child for the client's own request.
    pub fn own(child: usize, number: u32) -> Self {
        Self::default().and_own(child, number)
    }

    /// Asks this child for something else.
    pub fn ask(child: usize, number: u32, made: Vec<u8>) -> Self {
        Self::default().and_ask(child, number, made)
    }

    /// Gives the client this, and asks for nothing.
    pub fn give(give: Give) -> Self {
        Self {
            give: Some(give),
            asks: Vec::new(),
        }
    }

    /// Asks this child for the client's own request as well.
    #[must_use]
    pub(in crate::route) fn and_own(mut self, child: usize, number: u32) -> Self {
        self.asks.push(Ask {
            child,
            number: Some(number),
            made: None,
        });
        self
    }

    /// Asks this child for something else as well.
    #[must_use]
    pub(in crate::route) fn and_ask(mut self, child: usize, number: u32, made: Vec<u8>) -> Self {
        self.asks.push(Ask {
            child,
            number: Some(number),
            made: Some(made),
        });
        self
    }

    /// Sends this to a child, whose answer nobody gets.
    #[must_use]
    pub(in crate::route) fn and_tell(mut self, child: usize, made: Vec<u8>) -> Self {
        self.asks.push(Ask {
            child,
            number: None,
            made: Some(made),
        });
        self
    }
}

/// The answer to a client.
pub enum Give {
    /// The answer that has just come.
    This,
    /// An answer that has come before.
    Kept(Answers),
    /// This reply, which is one to the client's command.
    Made(Vec<u8>),
    /// What an empty cache answers.
    Miss,
    /// This error.
    Fail(Outcome, &'static str),
}

/// Something that a step asks.
pub struct Ask {
    /// The child that is asked.
    pub child: usize,
    /// The number under which the answer comes; `None`: nobody waits for it.
    pub number: Option<u32>,
    /// The request; `None`: the client's own.
    pub made: Option<Vec<u8>>,
}
