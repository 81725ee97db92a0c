//! What a reader carries along: the keys that lead to where it is, and what the checks after it will ask.

use std::collections::BTreeMap;

use super::{
    Complaint, Place,
    document::{Node, shortened},
};

/// The state of reading one configuration.
#[derive(Debug, Default)]
pub(super) struct Reading {
    path: Vec<String>,
    pub(super) index: Index,
    pub(super) warnings: Vec<Complaint>,
    /// Mistakes beside the one with which the reading ends, if it does: whoever reads several things reads them all.
    pub(super) mistakes: Vec<Complaint>,
}

/// Where the text says what the checks need to know.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Where each named route is defined, be it good or not.
    pub(super) routes: BTreeMap<String, Site>,
    /// Where each pool is defined, be it good or not.
    pub(super) pools: BTreeMap<String, Site>,
    /// Where the listeners stand, in the configuration's order and without those that have a mistake.
    pub(super) listeners: Vec<Site>,
    /// Where the admin port's address stands.
    pub(super) admin: Option<Site>,
    /// `pools` and `routes` have every name that there is: there was no mistake in where they stand.
    pub(super) has_all_names: bool,
    /// Names that must exist.
    pub(super) mentions: Vec<Mention>,
    /// Lists that must be as long as there are children.
    pub(super) lengths: Vec<Length>,
}

/// A place and the keys that lead there.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) at: Place,
    pub(super) path: String,
}

impl Site {
    /// A complaint about this place.
    pub(super) fn refuse(&self, problem: impl Into<String>) -> Complaint {
        Complaint {
            at: Some(self.at),
            path: self.path.clone(),
            problem: problem.into(),
            remedy: None,
        }
    }
}

/// A name that must exist.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) site: Site,
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What a name must be the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pool,
    RouteOrPool,
    /// `pool/server`.
    Member,
}

/// A list that must be as long as there are children.
#[derive(Clone, Debug)]
pub(super) struct Length {
    pub(super) site: Site,
    pub(super) found: usize,
    pub(super) children: super::schema::Children,
}

impl Reading {
    /// Reads something that stands under `key`.
    pub(super) fn within<T>(&mut self, key: impl Into<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.into());
        let out = read(self);
        self.path.pop();
        out
    }

    /// The place `at`, under the keys that lead here.
    pub(super) fn site(&self, at: Place) -> Site {
        let mut path = String::new();
        for key in &self.path {
            if !path.is_empty() && !key.starts_with('[') {
                path.push('.');
            }
            path.push_str(&shortened(key));
        }
        Site { at, path }
    }

    /// A complaint about `at`, under the keys that lead here.
    pub(super) fn refuse(&self, at: Place, problem: impl Into<String>) -> Complaint {
        self.site(at).refuse(problem)
    }

    /// A complaint that `node` is not what was expected.
    pub(super) fn expected(&self, node: &Node, what: &str) -> Complaint {
        self.refuse(node.at, format!("expected {what}, found {}", node.describe()))
    }

    /// All of several things, or the first mistake among them; the others are kept, to be told with it.
    pub(super) fn all<T>(&mut self, read: Vec<Result<T, Complaint>>) -> Result<Vec<T>, Complaint> {
        let mut values = Vec::with_capacity(read.len());
        let mut mistakes = Vec::new();
        for result in read {
            match result {
                Ok(value) => values.push(value),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        let mut mistakes = mistakes.into_iter();
        match mistakes.next() {
            None => Ok(values),
            Some(first) => {
                self.mistakes.extend(mistakes);
                Err(first)
            }
        }
    }

    /// Something worth saying that is no reason to refuse.
    pub(super) fn warn(&mut self, at: Place, problem: impl Into<String>) {
        let warning = self.refuse(at, problem);
        self.warnings.push(warning);
    }

    /// Remembers that `name` must exist.
    pub(super) fn mention(&mut self, at: Place, kind: Kind, name: &str) {
        let site = self.site(at);
        self.index.mentions.push(Mention {
            site,
            name: name.to_owned(),
            kind,
        });
    }
}
