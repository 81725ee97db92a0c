//! Lists in another order. With a seed it is the same order on every host, and the one that mcrouter makes: that
//! of the C++ library's `shuffle` with its `minstd_rand`.

use std::hash::{BuildHasher as _, RandomState};

use crate::{
    config::Diagnostic,
    frontdoor::mcrouter::preprocess::{
        call::LazyArguments,
        item::{Item, Json, ListBuilder},
        scope::Expand,
    },
};

pub(super) fn shuffle(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let Json::List(list) = unread.take("dictionary", expander)?.value else {
        return Err(Diagnostic::whole("Shuffle: argument must be an array"));
    };
    let seed = match unread.optional("seed", expander)?.map(|item| item.value) {
        // As in mcrouter, the lower half counts.
        Some(Json::Int(seed @ 0..)) => seed as u32,
        Some(_) => return Err(Diagnostic::whole("Shuffle: seed must be a non-negative integer")),
        None => RandomState::new().hash_one(()) as u32,
    };
    expander.meter().charge(list.items.len())?;
    let mut items = list.items.clone();
    Numbers::new(seed).shuffle(&mut items);
    let mut shuffled = ListBuilder::new();
    for item in items {
        shuffled.push(item)?;
    }
    Ok(Item {
        at: unread.at,
        value: shuffled.done(),
    })
}

/// The minimal standard generator: each number is the one before, times a constant, modulo a prime.
struct Numbers(u64);

impl Numbers {
    const PRIME: u64 = (1 << 31) - 1;
    /// The greatest number less the least.
    const SPAN: u64 = Self::PRIME - 2;

    fn new(seed: u32) -> Self {
        Self((u64::from(seed) % Self::PRIME).max(1))
    }

    /// A number below `end`. Numbers that would make some more likely are passed over.
    fn below(&mut self, end: u64) -> u64 {
        let scale = Self::SPAN / end;
        loop {
            self.0 = self.0 * 48_271 % Self::PRIME;
            let number = self.0 - 1;
            if number < end * scale {
                return number / scale;
            }
        }
    }

    /// Exchanges each element with one that is not behind it. One number serves two elements, where it is
    /// large enough.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        let count = items.len() as u64;
        if count == 0 {
            return;
        }
        if Self::SPAN / count < count {
            for i in 1..count {
                let other = self.below(i + 1);
                items.swap(i as usize, other as usize);
            }
            return;
        }
        let mut i = 1;
        if count.is_multiple_of(2) {
            items.swap(1, self.below(2) as usize);
            i = 2;
        }
        while i < count {
            let number = self.below((i + 1) * (i + 2));
            items.swap(i as usize, (number / (i + 2)) as usize);
            items.swap(i as usize + 1, (number % (i + 2)) as usize);
            i += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn orders_are_those_of_the_cpp_library() {
        let table: [(u32, &[u8]); 12] = [
            (0, &[0]),
            (0, &[1, 0]),
            (0, &[2, 3, 1, 0]),
            (1, &[3, 8, 1, 5, 6, 2, 0, 10, 4, 9, 7]),
            (2, &[2, 0, 3, 1]),
            (2, &[5, 4, 3, 7, 0, 6, 2, 1]),
            (7, &[1, 2, 0, 3]),
            (7, &[2, 4, 3, 1, 0]),
            (7, &[2, 7, 3, 1, 0, 4, 5, 9, 10, 6, 8]),
            (12_345, &[1, 2, 0]),
            (12_345, &[1, 10, 3, 0, 9, 4, 2, 7, 5, 8, 6]),
            (u32::MAX, &[5, 7, 1, 4, 0, 2, 6, 3]),
        ];
        for (seed, expected) in table {
            let mut items: Vec<u8> = (0..expected.len() as u8).collect();
            Numbers::new(seed).shuffle(&mut items);
            assert_eq!(items, expected, "seed {seed}");
        }
    }

    #[test]
    fn a_long_list_keeps_its_elements() {
        let mut items: Vec<u32> = (0..50_000).collect();
        Numbers::new(3).shuffle(&mut items);
        assert_ne!(items[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..50_000));
        Numbers::new(3).shuffle(&mut [] as &mut [u8]);
    }
}
