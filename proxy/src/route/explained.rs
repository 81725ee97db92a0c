//! What `explain` tells.

use std::fmt;

/// One step of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How deep it is; the first one is at 1.
    pub depth: usize,
    /// Its place among those beside it, for operators.
    pub note: &'static str,
    /// What it is: the name of a handle, `member`, `embedded`, `null` or `error`. Empty for a remark on the step
    /// before.
    pub name: &'static str,
    /// The rest of its line, for operators.
    pub text: String,
    /// The number of its node; `None`: it is a remark.
    pub node: Option<u32>,
    /// The address of a member, as configured, or the text of an error.
    pub end: Option<String>,
}

/// The walk of one request, step by step.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What is asked for, and by which configuration.
    pub title: String,
    /// Its steps, in the order in which they would be taken.
    pub steps: Vec<Step>,
}

impl fmt::Display for Explained {
    /// An indented text with one line for each step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for step in &self.steps {
            let Step { note, name, text, .. } = step;
            writeln!(f, "{:indent$}{note}{name}{text}", "", indent = step.depth * 2)?;
        }
        Ok(())
    }
}
