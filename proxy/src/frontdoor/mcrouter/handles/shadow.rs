//! ShadowRoute, and `shadows` of PoolRoute: copies of some requests go to other routes. As in mcrouter, an
//! entry that is wrong is left out, and the others count; `--validate-config` refuses it.

use std::ops::Range;

use super::Args;
use crate::{
    config::{
        Diagnostic, Place,
        document::{Node, Value},
        reading::Reading,
        schema::{Children, Leaf, Route, Shadow, ShadowKeys},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{Object, list, number, text, whole},
    },
};

/// A shadow, and the places of the children that it shadows. `None`: it shadows all.
#[derive(Clone, Debug)]
pub(super) struct Shadowing {
    pub(super) shadow: Shadow,
    pub(super) range: Option<Range<usize>>,
}

/// This child with the shadows of its place.
pub(super) fn around(child: Route, place: Option<usize>, shadows: &[Shadowing]) -> Route {
    let has = |range: &Range<usize>| place.is_some_and(|place| range.contains(&place));
    let of_place = shadows
        .iter()
        .filter(|shadow| shadow.range.as_ref().is_none_or(has));
    let shadows: Vec<Shadow> = of_place.map(|shadow| shadow.shadow.clone()).collect();
    match shadows.is_empty() {
        true => child,
        false => Route::Shadow(Box::new(child), shadows),
    }
}

/// ShadowRoute: its children, each with its shadows.
pub(super) fn shadow(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    args.need(&["children"], "ShadowRoute", cx)?;
    let children = args.children(builder, cx)?;
    let shadows = of(builder, args, cx)?;
    args.finish(&[], &["shadow_policy"], cx)?;
    let built = match children {
        Some(Children::Pool(pool)) => BuiltHandles::Members(pool),
        Some(Children::List(routes)) => BuiltHandles::List(routes),
        None => return Ok(BuiltHandles::One(Route::Leaf(Leaf::Null))),
    };
    if shadows.is_empty() {
        return Ok(built);
    }
    let children = builder.list_of(built).into_iter().enumerate();
    let shadowed = children.map(|(place, child)| around(child, Some(place), &shadows));
    Ok(BuiltHandles::List(shadowed.collect()))
}

/// Reads `shadows`.
pub(super) fn of(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<Vec<Shadowing>, Diagnostic> {
    let read = args.take("shadows", cx, |node, cx| match &node.value {
        Value::List(entries) => read_all(builder, entries, cx),
        _ => Err(cx.expected(node, "a list")),
    });
    match read {
        Ok(shadows) => Ok(shadows.unwrap_or_default()),
        Err(why) if builder.is_strict => Err(why),
        Err(why) => {
            leave_out(args.at, why, cx);
            Ok(Vec::new())
        }
    }
}

fn read_all(builder: &mut Builder, entries: &[Node], cx: &mut Reading) -> Result<Vec<Shadowing>, Diagnostic> {
    let mut shadows = Vec::new();
    for (number, node) in entries.iter().enumerate() {
        match cx.within(format!("[{number}]"), |cx| one(builder, node, cx)) {
            Ok(shadow) => shadows.push(shadow),
            Err(why) if builder.is_strict => return Err(why),
            Err(why) => leave_out(node.at, why, cx),
        }
    }
    Ok(shadows)
}

fn leave_out(at: Place, why: Diagnostic, cx: &mut Reading) {
    cx.warnings.push(Diagnostic {
        at: why.at.or(Some(at)),
        problem: format!("this shadow is left out: {}", why.problem),
        ..why
    });
}

fn one(builder: &mut Builder, node: &Node, cx: &mut Reading) -> Result<Shadowing, Diagnostic> {
    let object = Object::of(node, cx)?;
    let range = object.take("index_range", cx, places)?;
    let between = object.take("key_fraction_range", cx, shares)?;
    let listed = object.take("keys_to_shadow", cx, list(text))?;
    let listed = listed.filter(|keys| !keys.is_empty());
    let share = object.take("requests_fraction", cx, share)?.unwrap_or(1.0);
    if listed.is_some() && (range.is_some() || between.is_some()) {
        let problem = "`keys_to_shadow` stands beside `index_range` or `key_fraction_range`";
        return Err(cx.refuse(node.at, problem));
    }
    let target = object.require("target", cx)?;
    let target = cx.within("target", |cx| builder.one(target, cx))?;
    let target = builder.share(target, "shadow", node.at);
    object.finish(&[], &["validate_replies"], cx)?;
    let keys = match (listed, between) {
        (Some(keys), _) => ShadowKeys::Listed(keys),
        (None, between) => {
            let (from, to) = between.unwrap_or((0.0, 1.0));
            ShadowKeys::Between(from, to)
        }
    };
    let shadow = Shadow {
        target,
        keys,
        share,
        in_flight: builder.most_shadowed,
    };
    Ok(Shadowing { shadow, range })
}

fn pair<T: Copy + PartialOrd>(
    node: &Node,
    cx: &mut Reading,
    read: impl Fn(&Node, &mut Reading) -> Result<T, Diagnostic>,
) -> Result<(T, T), Diagnostic> {
    match list(read)(node, cx)?[..] {
        [from, to] if from <= to => Ok((from, to)),
        _ => Err(cx.expected(node, "two numbers in their order")),
    }
}

fn places(node: &Node, cx: &mut Reading) -> Result<Range<usize>, Diagnostic> {
    let (from, to) = pair(node, cx, whole(0))?;
    Ok(from.unsigned_abs() as usize..to.unsigned_abs() as usize)
}

fn shares(node: &Node, cx: &mut Reading) -> Result<(f64, f64), Diagnostic> {
    pair(node, cx, share)
}

fn share(node: &Node, cx: &mut Reading) -> Result<f64, Diagnostic> {
    match number(node, cx)? {
        share @ 0.0..=1.0 => Ok(share),
        _ => Err(cx.expected(node, "a number from 0 to 1")),
    }
}
