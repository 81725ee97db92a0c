//! Why a configuration was refused: file, line, column, the offending key and what would be right.

use std::{fmt, path::PathBuf};

use super::Place;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Where; none when the file as a whole is meant.
    pub at: Option<Place>,
    /// The keys that lead there, as `pools.cache.timeout`; empty when none do.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub remedy: Option<String>,
}

impl Diagnostic {
    /// About the file as a whole.
    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self {
            at: None,
            path: String::new(),
            problem: problem.into(),
            remedy: None,
        }
    }

    /// About a place to which no keys lead.
    pub(crate) fn at(at: Place, problem: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            path: String::new(),
            problem: problem.into(),
            remedy: None,
        }
    }

    /// The same, saying what would be right.
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

/// A configuration was refused as a whole: the operator has to mend the places that are named. Displayed as
/// one line for each diagnostic, `file:line:column: key: …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// The file, or what stands for it in messages.
    pub file: PathBuf,
    /// What is wrong; at least one.
    pub diagnostics: Vec<Diagnostic>,
    /// What is wrong with other files that it names.
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
