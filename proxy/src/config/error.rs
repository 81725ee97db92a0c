//! Diagnostics of a configuration: file, line, column, key, problem and remedy.

use std::{fmt, path::PathBuf};

use super::Place;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The place. `None`: the file as a whole.
    pub at: Option<Place>,
    /// The keys that lead there, as `pools.cache.timeout`. Empty if there are none.
    pub path: String,
    /// The problem.
    pub problem: String,
    /// The remedy, if there is one.
    pub remedy: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about the file as a whole.
    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self {
            at: None,
            path: String::new(),
            problem: problem.into(),
            remedy: None,
        }
    }

    /// A diagnostic about a place to which no keys lead.
    pub(crate) fn at(at: Place, problem: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            path: String::new(),
            problem: problem.into(),
            remedy: None,
        }
    }

    /// The same diagnostic, which is about `at` if it is about no other place.
    pub(crate) fn located(self, at: Place) -> Self {
        Self {
            at: self.at.or(Some(at)),
            ..self
        }
    }

    /// Adds a remedy.
    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "{at}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

/// A configuration was refused as a whole: the operator has to correct the places that are named. It is
/// displayed as one line for each diagnostic, `file:line:column: key: …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// The file, or a word for it in messages.
    pub file: PathBuf,
    /// The problems; at least one.
    pub diagnostics: Vec<Diagnostic>,
    /// Problems in other files that the configuration names.
    pub others: Vec<ConfigError>,
}

impl ConfigError {
    pub(crate) fn one(file: impl Into<PathBuf>, diagnostic: Diagnostic) -> Self {
        Self::all(file, vec![diagnostic])
    }

    pub(crate) fn all(file: impl Into<PathBuf>, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            file: file.into(),
            diagnostics,
            others: Vec::new(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            let blank = if diagnostic.at.is_some() { "" } else { " " };
            write!(f, "{newline}{}:{blank}{diagnostic}", self.file.display())?;
        }
        for other in &self.others {
            write!(f, "\n{other}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
