//! The state of a reader: the keys that lead to the current place, mistakes, and an index for the checks.

use std::{collections::BTreeMap, path::Path};

use super::{
    Diagnostic, Place,
    document::{Node, shortened},
};

/// The state of reading one configuration.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    path: Vec<String>,
    pub(crate) index: Index,
    pub(crate) warnings: Vec<Diagnostic>,
    /// Mistakes other than the one with which the reading ends. A reader of several things reads them all.
    pub(crate) mistakes: Vec<Diagnostic>,
    /// Is a fault that can be read in some way a mistake, and not a warning?
    pub(crate) is_strict: bool,
}

/// Places in the text for the checks.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The place of each named route, be it good or not.
    pub(crate) routes: BTreeMap<String, Site>,
    /// The place of each pool, be it good or not.
    pub(crate) pools: BTreeMap<String, Site>,
    /// The places of the listeners, in the configuration's order. Listeners with a mistake are missing.
    pub(crate) listeners: Vec<Site>,
    /// The place of the admin port's address.
    pub(crate) admin: Option<Site>,
    /// The places of the health listeners, in the configuration's order. Those with a mistake are missing.
    pub(crate) health: Vec<Site>,
    /// The address of twemproxy's statistics port, and its place.
    pub(crate) statistics: Option<(String, Site)>,
    /// The place of the section about the fleet.
    pub(crate) fleet: Option<Site>,
    /// Whether `pools` and `routes` have all names: no mistake stands where a name may be.
    pub(crate) has_all_names: bool,
    /// Names that must exist.
    pub(crate) mentions: Vec<Mention>,
    /// Numbers of members that must be up.
    pub(crate) wanted: Vec<LeastMembers>,
    /// Lists that must be as long as there are children.
    pub(crate) lengths: Vec<Length>,
}

/// A place with the keys that lead there.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) at: Place,
    pub(crate) path: String,
}

impl Site {
    /// A diagnostic about this place.
    pub(crate) fn refuse(&self, problem: impl Into<String>) -> Diagnostic {
        Diagnostic {
            at: Some(self.at),
            path: self.path.clone(),
            problem: problem.into(),
            remedy: None,
        }
    }
}

/// A number of members that must be up.
#[derive(Clone, Debug)]
pub(crate) struct LeastMembers {
    pub(crate) site: Site,
    pub(crate) pool: String,
    pub(crate) least: u32,
    pub(crate) remedy: String,
}

/// A name that must exist.
#[derive(Clone, Debug)]
pub(crate) struct Mention {
    pub(crate) site: Site,
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The kind of thing that a name must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pool,
    RouteOrPool,
    /// `pool/server`.
    Member,
}

/// A list that must be as long as there are children.
#[derive(Clone, Debug)]
pub(crate) struct Length {
    pub(crate) site: Site,
    pub(crate) found: usize,
    /// Children that have no entry.
    pub(crate) without: usize,
    pub(crate) children: Siblings,
}

/// The children that a list is about.
#[derive(Clone, Debug)]
pub(crate) enum Siblings {
    /// The servers of this pool.
    Pool(String),
    /// This number of routes.
    Routes(usize),
}

impl Reading {
    /// Reads something that stands under `key`.
    pub(crate) fn within<T>(&mut self, key: impl Into<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.into());
        let out = read(self);
        self.path.pop();
        out
    }

    /// The place `at`, under the keys that lead here.
    pub(crate) fn site(&self, at: Place) -> Site {
        let mut path = String::new();
        for key in &self.path {
            if !path.is_empty() && !key.starts_with('[') {
                path.push('.');
            }
            path.push_str(&shortened(key));
        }
        Site { at, path }
    }

    /// A diagnostic about `at`, under the keys that lead here.
    pub(crate) fn refuse(&self, at: Place, problem: impl Into<String>) -> Diagnostic {
        self.site(at).refuse(problem)
    }

    /// A diagnostic that `node` is not what is expected.
    pub(crate) fn expected(&self, node: &Node, what: &str) -> Diagnostic {
        self.refuse(node.at, format!("expected {what}, found {}", node.describe()))
    }

    /// Returns all results, or the first mistake among them. The other mistakes are recorded.
    pub(crate) fn all<T>(&mut self, read: Vec<Result<T, Diagnostic>>) -> Result<Vec<T>, Diagnostic> {
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

    /// Records a warning, which is no reason to refuse.
    pub(crate) fn warn(&mut self, at: Place, problem: impl Into<String>) {
        let warning = self.refuse(at, problem);
        self.warnings.push(warning);
    }

    /// Records a fault that can be read in some way: a warning, or a mistake if the reading is strict.
    pub(crate) fn fault(&mut self, at: Place, problem: impl Into<String>) {
        let fault = self.refuse(at, problem);
        match self.is_strict {
            true => self.mistakes.push(fault),
            false => self.warnings.push(fault),
        }
    }

    /// The warnings about this file, a line each.
    pub(crate) fn warnings_of(&self, file: &Path) -> Vec<String> {
        let warnings = self.warnings.iter();
        warnings
            .map(|warning| format!("{}:{warning}", file.display()))
            .collect()
    }

    /// Remembers that so many members of `pool` must be up. The remedy is for a pool that has fewer.
    pub(crate) fn want(&mut self, at: Place, pool: &str, least: u32, remedy: String) {
        let site = self.site(at);
        self.index.wanted.push(LeastMembers {
            site,
            pool: pool.to_owned(),
            least,
            remedy,
        });
    }

    /// Remembers that `name` must exist.
    pub(crate) fn mention(&mut self, at: Place, kind: Kind, name: &str) {
        let site = self.site(at);
        self.index.mentions.push(Mention {
            site,
            name: name.to_owned(),
            kind,
        });
    }
}
