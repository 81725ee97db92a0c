//! Built-in and defined macros, and their arguments.

use std::rc::Rc;

use super::{
    item::{Item, Json, Map},
    meter::Meter,
    scope::{Expand, Scope, State},
};
use crate::config::{Diagnostic, Place, document::shortened};

/// The result of a built-in macro.
pub(super) type MacroResult = Result<Json, Diagnostic>;

/// A macro.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Rc<str>,
    parameters: Vec<Parameter>,
    body: Body,
}

/// A parameter of a macro.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: Rc<str>,
    pub(super) otherwise: MissingArgument,
}

/// The handling of a parameter that a call does not give.
#[derive(Debug)]
pub(super) enum MissingArgument {
    /// The call is refused.
    Refused,
    /// The parameter has no value.
    Nothing,
    /// This value, as it is written.
    Value(Item),
}

/// The body of a macro.
#[derive(Debug)]
pub(super) enum Body {
    /// It stands for this value, in which the parameters are names.
    Defined(Item),
    BuiltIn(BuiltIn),
}

/// A function that makes a value of arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum BuiltIn {
    One(fn(&Json, &Meter) -> MacroResult),
    Two(fn(&Json, &Json, &Meter) -> MacroResult),
    Three(fn(&Json, &Json, &Json, &Meter) -> MacroResult),
    /// It expands those arguments that it needs.
    Lazy(fn(&mut dyn Expand, &LazyArguments<'_>) -> Result<Item, Diagnostic>),
}

/// The arguments of a call as they are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum RawArguments<'a> {
    /// `@name(a, b)`: in order.
    Short(&'a [&'a str]),
    /// `{"type": "name", …}`: by name.
    Long(&'a Map),
}

/// The arguments of a lazy macro.
#[derive(Debug)]
pub(super) struct LazyArguments<'a> {
    arguments: Vec<(&'a str, Argument<'a>)>,
    /// The place of the call.
    pub(super) at: Place,
    /// The names that hold where the call stands.
    pub(super) scope: &'a Scope<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Argument<'a> {
    Text(&'a str),
    Item(&'a Item),
    /// A default, which is not expanded.
    Default(&'a Item),
}

impl Macro {
    /// Makes a macro.
    ///
    /// # Errors
    /// A parameter that must be given follows one that need not.
    pub(super) fn new(name: Rc<str>, parameters: Vec<Parameter>, body: Body) -> Result<Self, Diagnostic> {
        let is_required = |parameter: &Parameter| matches!(parameter.otherwise, MissingArgument::Refused);
        if parameters
            .iter()
            .skip_while(|parameter| is_required(parameter))
            .any(is_required)
        {
            let problem = format!(
                "Incorrect defaults/optionals in macro {}: a parameter without a default stands behind one that has it",
                shortened(&name)
            );
            return Err(Diagnostic::whole(problem));
        }
        Ok(Self {
            name,
            parameters,
            body,
        })
    }

    /// Expands a call that stands at `at` in `scope`.
    pub(super) fn call(
        &self,
        given: RawArguments<'_>,
        at: Place,
        scope: &Scope<'_>,
        expander: &mut dyn Expand,
    ) -> Result<Item, Diagnostic> {
        let arguments = self.arguments(given)?;
        let unread = LazyArguments { arguments, at, scope };
        let made = match &self.body {
            Body::BuiltIn(BuiltIn::Lazy(expand)) => return expand(expander, &unread),
            Body::Defined(result) => {
                let inside = Scope::default();
                for (name, argument) in &unread.arguments {
                    let value = unread.expand(*argument, expander)?;
                    inside.add((*name).into(), State::Ready(value))?;
                }
                return expander
                    .item(result, &inside)
                    .map_err(|error| expander.noted(error, &self.name, at));
            }
            Body::BuiltIn(BuiltIn::One(make)) => {
                let [a] = unread.all(expander)?;
                make(&a.value, expander.meter())
            }
            Body::BuiltIn(BuiltIn::Two(make)) => {
                let [a, b] = unread.all(expander)?;
                make(&a.value, &b.value, expander.meter())
            }
            Body::BuiltIn(BuiltIn::Three(make)) => {
                let [a, b, c] = unread.all(expander)?;
                make(&a.value, &b.value, &c.value, expander.meter())
            }
        };
        Ok(Item { at, value: made? })
    }

    fn arguments<'a>(&'a self, given: RawArguments<'a>) -> Result<Vec<(&'a str, Argument<'a>)>, Diagnostic> {
        let name = || shortened(&self.name);
        if let RawArguments::Short(texts) = given {
            let least = self
                .parameters
                .iter()
                .filter(|parameter| matches!(parameter.otherwise, MissingArgument::Refused));
            let (least, most, found) = (least.count(), self.parameters.len(), texts.len());
            if found < least {
                let problem = format!(
                    "Too few arguments for macro {}. Expected at least {least} got {found}",
                    name()
                );
                return Err(Diagnostic::whole(problem));
            }
            if found > most {
                let problem = format!(
                    "Too many arguments for macro {}. Expected at most {most} got {found}",
                    name()
                );
                return Err(Diagnostic::whole(problem));
            }
        }
        let mut arguments = Vec::with_capacity(self.parameters.len());
        for (i, parameter) in self.parameters.iter().enumerate() {
            let argument = match given {
                RawArguments::Short(texts) => texts.get(i).map(|text| Argument::Text(text)),
                RawArguments::Long(map) => map.get(&parameter.name).map(Argument::Item),
            };
            let argument = match (argument, &parameter.otherwise) {
                (Some(argument), _) => argument,
                (None, MissingArgument::Value(item)) => Argument::Default(item),
                (None, MissingArgument::Nothing) => continue,
                (None, MissingArgument::Refused) => {
                    let missing = shortened(&parameter.name);
                    let problem = format!("Macro call {}: '{missing}' parameter not found", name());
                    return Err(Diagnostic::whole(problem));
                }
            };
            arguments.push((&*parameter.name, argument));
        }
        Ok(arguments)
    }
}

impl LazyArguments<'_> {
    /// The value of an argument that every call gives.
    pub(super) fn take(&self, name: &str, expander: &mut dyn Expand) -> Result<Item, Diagnostic> {
        match self.optional(name, expander)? {
            Some(item) => Ok(item),
            None => Err(Diagnostic::whole(format!("'{name}' parameter not found"))),
        }
    }

    /// The value of an argument.
    pub(super) fn optional(&self, name: &str, expander: &mut dyn Expand) -> Result<Option<Item>, Diagnostic> {
        let argument = self.arguments.iter().find(|(known, _)| *known == name);
        argument
            .map(|(_, argument)| self.expand(*argument, expander))
            .transpose()
    }

    fn all<const N: usize>(&self, expander: &mut dyn Expand) -> Result<[Item; N], Diagnostic> {
        let items = self
            .arguments
            .iter()
            .map(|(_, argument)| self.expand(*argument, expander));
        let items = items.collect::<Result<Vec<Item>, _>>()?;
        // The table of built-in macros names as many parameters as the function takes.
        items
            .try_into()
            .map_err(|_| Diagnostic::whole("a built-in macro takes other parameters"))
    }

    fn expand(&self, argument: Argument<'_>, expander: &mut dyn Expand) -> Result<Item, Diagnostic> {
        match argument {
            Argument::Text(text) => expander.text(text, self.at, self.scope),
            Argument::Item(item) => expander.item(item, self.scope),
            Argument::Default(item) => Ok(item.clone()),
        }
    }
}
