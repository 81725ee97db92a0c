//! Lists, maps, and optional values.

use std::marker::PhantomData;

use super::{Form, Shape};
use crate::config::{
    Diagnostic,
    document::{Name, Node, Value},
    reading::Reading,
};

/// Several values, in order.
#[derive(Debug)]
pub(in crate::config) struct List<F>(PhantomData<F>);

impl<F: Form> Form for List<F> {
    type Value = Vec<F::Value>;

    fn shape() -> Shape {
        Shape::List(Box::new(F::shape()))
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let Value::List(nodes) = &node.value else {
            return Err(cx.expected(node, "a list"));
        };
        let read = |(i, node)| cx.within(format!("[{i}]"), |cx| F::read(node, cx));
        let read = nodes.iter().enumerate().map(read).collect();
        cx.all(read)
    }
}

/// A value that may be absent.
#[derive(Debug)]
pub(in crate::config) struct Optional<F>(PhantomData<F>);

impl<F: Form> Form for Optional<F> {
    type Value = Option<F::Value>;

    fn shape() -> Shape {
        F::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        F::read(node, cx).map(Some)
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }
}

/// A value that is read apart from its neighbours: a mistake in it leaves `None`, and the others are read as
/// well.
#[derive(Debug)]
pub(in crate::config) struct Apart<F>(PhantomData<F>);

impl<F: Form> Form for Apart<F> {
    type Value = Option<F::Value>;

    fn shape() -> Shape {
        F::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        F::read(node, cx)
            .map(Some)
            .or_else(|mistake| Self::mistaken(mistake, cx))
    }

    fn absent() -> Option<Self::Value> {
        F::absent().map(Some)
    }

    fn mistaken(mistake: Diagnostic, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        cx.mistakes.push(mistake);
        Ok(None)
    }

    fn show(value: &Self::Value) -> Option<String> {
        value.as_ref().and_then(F::show)
    }
}

/// Values by names of the user's choice, in the order of the text.
#[derive(Debug)]
pub(in crate::config) struct ByName<F, W>(PhantomData<(F, W)>);

/// Kinds of things that have names, for messages and the reference.
pub(in crate::config) trait Named {
    /// The word for them, as in "name of the …".
    const WHAT: &'static str;
}

impl<F: Form, W: Named> Form for ByName<F, W> {
    type Value = Vec<(Name, F::Value)>;

    fn shape() -> Shape {
        Shape::ByName {
            what: W::WHAT,
            of: Box::new(F::shape()),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let Value::Map(entries) = &node.value else {
            return Err(cx.expected(
                node,
                &format!("a map, each {} with its name before a colon", W::WHAT),
            ));
        };
        let read = |(name, node): &(Name, Node)| {
            cx.within(&*name.text, |cx| F::read(node, cx))
                .map(|value| (name.clone(), value))
        };
        let read = entries.iter().map(read).collect();
        cx.all(read)
    }

    fn absent() -> Option<Self::Value> {
        Some(Vec::new())
    }
}
