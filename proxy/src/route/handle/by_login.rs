//! by_user and by_schema: the child for what a client has said of itself at its login, or since.

use std::collections::BTreeMap;

use super::Random;
use crate::{
    config::{routes, schema::OfLogin},
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker, Named},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The routes `by_user` and `by_schema`.
#[derive(Debug)]
pub(in crate::route) struct ByLogin {
    /// What decides.
    pub(in crate::route) of: OfLogin,
    /// The index of the child by name.
    pub(in crate::route) names: BTreeMap<Vec<u8>, usize>,
    /// The child for every other client.
    pub(in crate::route) default: usize,
}

impl ByLogin {
    fn find<'a>(&self, query: &Query<'a>) -> (&'a [u8], Option<usize>) {
        let asked = query.asked();
        let name = match self.of {
            OfLogin::User => query.protocol.user(asked.session),
            OfLogin::Schema => query.protocol.schema(asked.session, asked.message),
        };
        (name, self.names.get(name).copied())
    }
}

impl Choose for ByLogin {
    fn name(&self) -> &'static str {
        self.of.route()
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        self.find(query).1.unwrap_or(self.default)
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        let what = self.of.noun();
        match self.find(query) {
            (b"", _) => format!("no {what}"),
            (name, Some(_)) => format!("{what} {}", name.escape_ascii()),
            (name, None) => format!("{what} {} is not in the list", name.escape_ascii()),
        }
    }
}

impl ByLogin {
    fn build<'a>(
        of: OfLogin,
        (children, default): Named<'a>,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = Vec::new();
        let mut names = BTreeMap::new();
        for (name, route) in children {
            names.insert(name.as_bytes().to_vec(), nodes.len());
            nodes.push(maker.node(route)?);
        }
        nodes.push(maker.default(default, &format!("no route for this client's {}", of.noun()))?);
        let default = nodes.len() - 1;
        Ok(maker.choose(Self { of, names, default }, nodes))
    }
}

impl<'a> Build<'a, Named<'a>> for routes::ByUser {
    fn build(&'a self, children: Named<'a>, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        ByLogin::build(OfLogin::User, children, maker)
    }
}

impl<'a> Build<'a, Named<'a>> for routes::BySchema {
    fn build(&'a self, children: Named<'a>, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        ByLogin::build(OfLogin::Schema, children, maker)
    }
}
