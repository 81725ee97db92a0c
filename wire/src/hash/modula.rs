//! twemproxy's and libmemcached's modula: the remainder of the key's number.

use super::random::pick_random;

/// Members side by side on a line, each as long as its weight.
#[derive(Debug)]
pub(super) struct Modula {
    /// The end of each member on the line. The last one is the total weight, which is not 0.
    ends: Vec<u32>,
    /// The weight of every member, if they are equal.
    common: Option<u32>,
}

impl Modula {
    /// `None`: the weights add up to 0, or to more than 2^32 - 1.
    pub(super) fn new(weights: &[u32]) -> Option<Self> {
        let mut total = 0u32;
        let mut ends = Vec::with_capacity(weights.len());
        for weight in weights {
            total = total.checked_add(*weight)?;
            ends.push(total);
        }
        let common = weights
            .first()
            .copied()
            .filter(|first| weights.iter().all(|weight| weight == first));
        (total > 0).then_some(Self { ends, common })
    }

    pub(super) fn pick(&self, number: u32) -> usize {
        self.member_at(number % self.total())
    }

    /// The member at a random number, in proportion to the weights.
    pub(super) fn pick_by_draw(&self, draw: u64) -> usize {
        self.member_at(pick_random(self.total() as usize, draw) as u32)
    }

    pub(super) fn weighs(&self, member: usize) -> bool {
        let start = if member == 0 { 0 } else { self.ends[member - 1] };
        self.ends[member] > start
    }

    fn total(&self) -> u32 {
        self.ends[self.ends.len() - 1]
    }

    fn member_at(&self, place: u32) -> usize {
        match self.common {
            Some(weight) => (place / weight) as usize,
            None => self.ends.partition_point(|&end| end <= place),
        }
    }
}
