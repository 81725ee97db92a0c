//! The values of names in a part of a configuration.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use super::{item::Item, meter::Meter};
use crate::config::{Diagnostic, Place, document::shortened};

/// Expands values. What a value holds may call a macro, and a macro's result is a value again.
pub(super) trait Expand {
    /// Expands a value that stands in `scope`.
    fn item(&mut self, item: &Item, scope: &Scope<'_>) -> Result<Item, Diagnostic>;

    /// Expands a string, as arguments are.
    fn text(&mut self, text: &str, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic>;

    /// Adds to an error where the macro was called in which it was found.
    fn noted(&mut self, error: Diagnostic, name: &str, at: Place) -> Diagnostic;

    /// Whether a constant has this name.
    fn has_constant(&self, name: &str) -> bool;

    /// The work that is left.
    fn meter(&self) -> &Meter;

    /// The text of a further file.
    fn imported_text(&mut self, path: &str) -> Result<String, Diagnostic>;

    /// The imports until now, by path.
    fn imported(&mut self) -> &mut HashMap<Rc<str>, Import>;
}

/// The state of an imported file.
#[derive(Clone, Debug)]
pub(super) enum Import {
    /// It is being read.
    Busy,
    Value(Item),
}

/// Names that hold in a part of a configuration.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    /// The scope of names that are not found here. `None`: the constants alone, as in the result of a macro.
    outer: Option<&'a Scope<'a>>,
    locals: RefCell<Vec<(Rc<str>, State)>>,
}

/// A value that has a name.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It is expanded in this scope at its first use.
    Raw(Item),
    /// It is being expanded.
    Busy,
    Ready(Item),
}

impl<'a> Scope<'a> {
    /// A scope within another one.
    pub(super) fn within(outer: &'a Scope<'a>) -> Self {
        Self {
            outer: Some(outer),
            locals: RefCell::default(),
        }
    }

    /// Adds a name, which must be a new one in this scope.
    pub(super) fn add(&self, name: Rc<str>, state: State) -> Result<(), Diagnostic> {
        let mut locals = self.locals.borrow_mut();
        if locals.iter().any(|(known, _)| *known == name) {
            let problem = format!("'{}' already exists in local scope", shortened(&name));
            return Err(Diagnostic::whole(problem));
        }
        locals.push((name, state));
        Ok(())
    }

    /// Changes the values of the names of this scope, in the order in which they were added.
    pub(super) fn set<const N: usize>(&self, values: [Item; N]) {
        for ((_, state), value) in self.locals.borrow_mut().iter_mut().zip(values) {
            *state = State::Ready(value);
        }
    }

    /// Whether a name is known here.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.locals.borrow().iter().any(|(known, _)| &**known == name)
            || self.outer.is_some_and(|outer| outer.contains(name))
    }

    /// The value of a name. `None` if this scope does not have it.
    pub(super) fn find(&self, name: &str, expander: &mut dyn Expand) -> Result<Option<Item>, Diagnostic> {
        let found = self
            .locals
            .borrow()
            .iter()
            .position(|(known, _)| &**known == name);
        let Some(found) = found else {
            return self.outer.map_or(Ok(None), |outer| outer.find(name, expander));
        };
        let replace = |state| {
            self.locals
                .borrow_mut()
                .get_mut(found)
                .map(|(_, old)| std::mem::replace(old, state))
        };
        match replace(State::Busy) {
            Some(State::Ready(item)) => {
                replace(State::Ready(item.clone()));
                Ok(Some(item))
            }
            Some(State::Raw(raw)) => {
                let item = expander.item(&raw, self)?;
                replace(State::Ready(item.clone()));
                Ok(Some(item))
            }
            Some(State::Busy) | None => {
                let problem = format!("the variable '{}' leads back to itself", shortened(name));
                Err(Diagnostic::whole(problem))
            }
        }
    }

    /// Expands all that is not expanded yet.
    pub(super) fn settle(&self, expander: &mut dyn Expand) -> Result<(), Diagnostic> {
        let names: Vec<Rc<str>> = self
            .locals
            .borrow()
            .iter()
            .map(|(name, _)| Rc::clone(name))
            .collect();
        names
            .iter()
            .try_for_each(|name| self.find(name, expander).map(drop))
    }
}
