//! When keys that are asked for most are counted.

/// When samples of requests are taken, by which keys are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotKeys {
    /// While somebody watches.
    Watched,
    /// Always.
    On,
}
