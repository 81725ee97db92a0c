//! Routes, and lists of them.

use super::{Children, HANDLES, Leaf, Route};
use crate::config::{
    Diagnostic,
    document::{Node, Value, shortened},
    form::{Form, Shape},
    reading::{Kind, Reading},
    suggest,
};

/// A route: a name, or one handle with its parameters.
#[derive(Debug)]
pub(in crate::config) struct RouteForm;

impl Form for RouteForm {
    type Value = Route;

    fn shape() -> Shape {
        Shape::Route
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
        route(node, cx).or_else(|mistake| Self::mistaken(mistake, cx))
    }

    /// A route that leads nowhere takes the place of one with a mistake, so that those around it can be
    /// checked.
    fn mistaken(mistake: Diagnostic, cx: &mut Reading) -> Result<Route, Diagnostic> {
        cx.mistakes.push(mistake);
        Ok(Route::Leaf(Leaf::Null))
    }
}

fn route(node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
    match &node.value {
        // An unquoted `null` is YAML's null, and means the route of that name here. Only an empty place means
        // nothing.
        Value::Scalar { text, .. } if !text.is_empty() && text != "~" => {
            match HANDLES
                .iter()
                .find(|handle| handle.is_word && handle.name == text)
            {
                Some(handle) => (handle.read)(node, cx),
                None => {
                    cx.mention(node.at, Kind::RouteOrPool, text);
                    Ok(Route::Named(text.clone()))
                }
            }
        }
        Value::Map(entries) => match entries.as_slice() {
            [(name, parameters)] => match HANDLES.iter().find(|handle| handle.name == name.text) {
                Some(handle) => cx.within(handle.name, |cx| (handle.read)(parameters, cx)),
                None => Err(Diagnostic {
                    remedy: suggest::remedy(&name.text, HANDLES.iter().map(|handle| handle.name)),
                    ..cx.refuse(name.at, format!("unknown handle `{}`", shortened(&name.text)))
                }),
            },
            _ => Err(cx
                .refuse(
                    node.at,
                    format!("a route has one handle, this map has {} keys", entries.len()),
                )
                .with_remedy("write `{handle: …}`, with the handle's keys below it")),
        },
        _ => Err(cx
            .expected(node, "a route")
            .with_remedy("write a name, or `{handle: …}`")),
    }
}

/// Several routes: a pool's name for all its members, or a list.
#[derive(Debug)]
pub(super) struct ChildrenForm;

impl Form for ChildrenForm {
    type Value = Children;

    fn shape() -> Shape {
        Shape::Children
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Children, Diagnostic> {
        match &node.value {
            Value::Scalar { text, .. } if !node.is_null() => {
                cx.mention(node.at, Kind::Pool, text);
                Ok(Children::Pool(text.clone()))
            }
            Value::List(nodes) if nodes.is_empty() => Err(cx.refuse(node.at, "there are no children")),
            Value::List(nodes) => {
                let read = |(i, node)| cx.within(format!("[{i}]"), |cx| RouteForm::read(node, cx));
                let read = nodes.iter().enumerate().map(read).collect();
                Ok(Children::List(cx.all(read)?))
            }
            _ => Err(cx.expected(node, "the name of a pool or a list of routes")),
        }
    }
}
