//! How a route is described: its name, the rule for copies, and its entry in the reference.

use super::Route;
use crate::config::{Diagnostic, document::Node, form::Shape, reading::Reading};

/// What is said of a route beside the routes below it.
pub trait Spec {
    /// The name of the route, wherever people read it.
    const NAME: &'static str;
}

/// A route over several children, which may be the servers of a replicated pool.
pub trait Over: Spec {
    /// A change reaches every child, and is answered when all have it. Where this is not so, the route is
    /// refused over a replicated pool.
    const REACHES_ALL_COPIES: bool;
}

/// A route as it is written in a configuration.
#[derive(Debug)]
pub(in crate::config) struct Handle {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) about: &'static str,
    /// The handle has no parameters: its name alone is the route.
    pub(in crate::config) is_word: bool,
    pub(in crate::config) shape: fn() -> Shape,
    pub(super) read: fn(&Node, &mut Reading) -> Result<Route, Diagnostic>,
}

/// A [`Handle`]: what it means, its name, the form of its keys, and the route that they make. A handle
/// without a form stands alone, as a word.
macro_rules! handle {
    ($(#[doc = $about:literal])+ $name:path, $form:ty => $make:expr) => {
        $crate::config::routes::spec::Handle {
            name: $name,
            about: concat!($($about, "\n"),+),
            is_word: false,
            shape: <$form as $crate::config::form::Form>::shape,
            read: |node, cx| Ok($make(<$form as $crate::config::form::Form>::read(node, cx)?)),
        }
    };
    ($(#[doc = $about:literal])+ $name:path => $make:expr) => {
        $crate::config::routes::spec::Handle {
            name: $name,
            about: concat!($($about, "\n"),+),
            is_word: true,
            shape: || $crate::config::form::Shape::Words(vec![($name, "")]),
            read: |node, cx| match node.scalar() {
                Some(text) if text == $name || node.is_null() => Ok($make),
                _ => Err(cx.expected(node, "nothing").with_remedy("this handle stands alone, as a word")),
            },
        }
    };
}
pub(super) use handle;

/// A shape of routes: one variant for each route that has it, with what is said of the route.
macro_rules! shape {
    ($(#[doc = $about:literal])+ $shape:ident: $($spec:ident)+) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the types of the routes say it")]
        pub enum $shape {
            $($spec($spec),)+
        }

        $(
            impl From<$spec> for $shape {
                fn from(spec: $spec) -> Self {
                    Self::$spec(spec)
                }
            }
        )+

        impl $shape {
            /// The name of the route.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$spec(_) => <$spec as $crate::config::routes::Spec>::NAME,)+
                }
            }
        }
    };
    ($(#[doc = $about:literal])+ $shape:ident with copies: $($spec:ident)+) => {
        $crate::config::routes::spec::shape! { $(#[doc = $about])+ $shape: $($spec)+ }

        impl $shape {
            /// Does a change by this route reach every child before it is answered?
            pub const fn reaches_all_copies(&self) -> bool {
                match self {
                    $(Self::$spec(_) => <$spec as $crate::config::routes::Over>::REACHES_ALL_COPIES,)+
                }
            }
        }
    };
}
pub(super) use shape;
