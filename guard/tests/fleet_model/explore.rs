//! Breadth-first exploration of all states, which finds the shortest way to a wrong one.

use std::{
    collections::HashSet,
    fmt::Debug,
    hash::{BuildHasherDefault, Hasher},
    time::{Duration, Instant},
};

/// Something with states.
pub(crate) trait Model: Clone {
    /// What leads from one state to another.
    type Step: Copy + Debug;
    /// The steps that are possible now, always in the same order.
    fn steps(&self) -> Vec<Self::Step>;
    /// Makes a step.
    fn make(&mut self, step: Self::Step);
    /// Equal states have equal fingerprints; others nearly never.
    fn fingerprint(&self) -> u64;
    /// Why this state must not be; `None`: it may.
    fn wrong(&self) -> Option<String>;
}

/// What an exploration has found.
pub(crate) struct Explored<S> {
    /// How many states there are, as far as they were visited.
    pub(crate) states: usize,
    /// The length of the longest way that was gone.
    pub(crate) depth: usize,
    /// How long it took.
    pub(crate) took: Duration,
    /// The shortest way to a wrong state, and what is wrong there.
    pub(crate) wrong: Option<(Vec<S>, String)>,
    /// Every state was visited.
    pub(crate) exhausted: bool,
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

/// The state that another one was first reached from, and the place of the step in its list.
struct Origin {
    parent: u32,
    step: u8,
}

/// Visits the states that can be reached from `first`, nearest first, up to `limit` of them.
pub(crate) fn explore<M: Model>(first: &M, limit: usize) -> Explored<M::Step> {
    let begun = Instant::now();
    let mut known: HashSet<u64, BuildHasherDefault<Same>> = HashSet::default();
    let mut origins = vec![Origin { parent: 0, step: 0 }];
    let mut border = vec![(0_u32, first.clone())];
    known.insert(first.fingerprint());
    let mut depth = 0;
    let done = |origins: &Vec<Origin>, depth, wrong, exhausted| Explored {
        states: origins.len(),
        depth,
        took: begun.elapsed(),
        wrong,
        exhausted,
    };
    while !border.is_empty() {
        let mut next = Vec::new();
        for (parent, state) in border {
            for (number, step) in state.steps().into_iter().enumerate() {
                let mut after = state.clone();
                after.make(step);
                if !known.insert(after.fingerprint()) {
                    continue;
                }
                let at = origins.len() as u32;
                let step = number as u8;
                origins.push(Origin { parent, step });
                if let Some(why) = after.wrong() {
                    let way = way(first, &origins, at);
                    return done(&origins, depth + 1, Some((way, why)), false);
                }
                next.push((at, after));
            }
            if origins.len() >= limit {
                return done(&origins, depth, None, false);
            }
        }
        depth += usize::from(!next.is_empty());
        border = next;
    }
    done(&origins, depth, None, true)
}

/// The steps from the first state to this one.
fn way<M: Model>(first: &M, origins: &[Origin], mut at: u32) -> Vec<M::Step> {
    let mut places = Vec::new();
    while at != 0 {
        let origin = &origins[at as usize];
        places.push(origin.step);
        at = origin.parent;
    }
    let mut state = first.clone();
    let make = |place: &u8| {
        let step = state.steps()[usize::from(*place)];
        state.make(step);
        step
    };
    places.iter().rev().map(make).collect()
}
