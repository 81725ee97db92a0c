//! Ch3 with weights: mcrouter's WeightedCh3.

use super::{furc::furc, salted::salted, spooky::spooky32};

/// Draws before the last one is taken although it was not accepted.
const TRIES: u8 = 32;
const SEED: u32 = 0xface_2014;

/// Each try draws a member by Ch3 and accepts it with a probability of the member's weight, both from the key
/// alone. A lower weight therefore moves only keys of that member.
#[derive(Debug)]
pub(super) struct WeightedCh3 {
    /// weight × (2^32 - 1) by member. A draw below it accepts.
    thresholds: Vec<f64>,
}

impl WeightedCh3 {
    /// Weights from 0 to 1.
    pub(super) fn new(weights: impl Iterator<Item = f64>) -> Self {
        Self {
            thresholds: weights.map(|weight| weight * f64::from(u32::MAX)).collect(),
        }
    }

    pub(super) fn pick(&self, key: &[u8]) -> usize {
        match self.draw(key, |_| true) {
            Ok(member) | Err(member) => member,
        }
    }

    /// A member that is not live counts as one with weight 0. Keys that no try places go to the next live
    /// member with a weight behind Ch3's choice.
    pub(super) fn pick_live(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        self.draw(key, &is_live).ok().or_else(|| {
            let members = self.thresholds.len();
            let first = furc(key, members);
            (first..members)
                .chain(0..first)
                .find(|&member| self.thresholds[member] > 0.0 && is_live(member))
        })
    }

    /// The accepted member, or the last one drawn.
    fn draw(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let draw_by = |key: &[u8]| {
            let member = furc(key, self.thresholds.len());
            let accepted = f64::from(spooky32(key, SEED)) < self.thresholds[member] && is_live(member);
            if accepted { Ok(member) } else { Err(member) }
        };
        let mut drawn = draw_by(key);
        for retry in 0..TRIES - 1 {
            if drawn.is_ok() {
                break;
            }
            // The retry's number in decimal, lowest digit first: 0, ..., 9, 01, 11, ...
            let digits = [b'0' + retry % 10, b'0' + retry / 10];
            let salt = if retry < 10 { &digits[..1] } else { &digits[..] };
            drawn = salted(key, salt, draw_by);
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::WeightedCh3;

    #[test]
    fn known_answers() {
        let long = [b'a'; 200];
        let halves = WeightedCh3::new([0.5, 0.5, 0.5].into_iter());
        let mixed = WeightedCh3::new([1.0, 0.5, 0.0, 0.75, 1.0].into_iter());
        let steep = WeightedCh3::new([0.1, 1.0, 0.0].into_iter());
        let table: [(&[u8], usize, usize, usize); 17] = [
            (b"key0", 0, 4, 1),
            (b"key1", 2, 0, 1),
            (b"key2", 0, 4, 1),
            (b"foo", 0, 0, 1),
            (b"abc:12:def", 0, 0, 1),
            (b"user:1000", 2, 4, 1),
            (&long, 0, 4, 1),
            (b"foo0", 1, 0, 1),
            (b"foo1", 2, 3, 1),
            (b"foo2", 0, 0, 1),
            (b"foo3", 0, 3, 0),
            (b"foo4", 0, 0, 1),
            (b"foo5", 1, 1, 1),
            (b"foo6", 0, 4, 0),
            (b"foo7", 0, 0, 1),
            (b"foo8", 0, 0, 0),
            (b"foo9", 0, 4, 1),
        ];
        for (key, a, b, c) in table {
            assert_eq!(
                (halves.pick(key), mixed.pick(key), steep.pick(key)),
                (a, b, c),
                "{}",
                key.escape_ascii()
            );
        }
    }
}
