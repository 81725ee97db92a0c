//! The figures of a table.

use serde::Serialize;

/// A figure that each round of each way has.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    /// Digits after the point.
    #[serde(skip)]
    pub(super) digits: usize,
    /// The way whose figure of the same round it is also a multiple of.
    pub(super) beside: Option<&'static str>,
    /// The most that Proxima may have: of the multiple, if there is one.
    pub(super) bar: Option<f64>,
}

/// The figures of one round of one way, in the order of the table. `None`: the way has no such figure.
pub(super) type Figures = Vec<Option<f64>>;

impl Figure {
    pub(super) const fn new(name: &'static str, digits: usize) -> Self {
        Self {
            name,
            digits,
            beside: None,
            bar: None,
        }
    }

    pub(super) const fn beside(self, way: &'static str) -> Self {
        Self {
            beside: Some(way),
            ..self
        }
    }

    pub(super) const fn bar(self, most: f64) -> Self {
        Self {
            bar: Some(most),
            ..self
        }
    }
}
