//! Random members. They do not depend on the key, so this is no [`Distribution`](super::Distribution).

/// One of `members` members (at least one), all equally likely, from a `draw` of 64 random bits.
#[inline]
pub fn pick_random(members: usize, draw: u64) -> usize {
    scale(members, draw).0
}

/// One of the live members, all equally likely. `None`: no member is live.
pub fn pick_random_live(members: usize, draw: u64, is_live: impl Fn(usize) -> bool) -> Option<usize> {
    let (member, rest) = scale(members, draw);
    if member < members && is_live(member) {
        return Some(member);
    }
    let live = (0..members).filter(|&member| is_live(member)).count();
    (0..members)
        .filter(|&member| is_live(member))
        .nth(scale(live, rest).0)
}

/// `draw` / 2^64 × `members`: the whole part, and the fraction as a fresh draw (Lemire, "Fast Random Integer
/// Generation in an Interval", 2019, without the rejection: the bias is below `members` / 2^64).
fn scale(members: usize, draw: u64) -> (usize, u64) {
    let product = u128::from(draw) * members as u128;
    ((product >> 64) as usize, product as u64)
}

#[cfg(test)]
mod tests {
    use super::{pick_random, pick_random_live};

    #[test]
    fn spans_all_members() {
        assert_eq!(
            (
                pick_random(1, u64::MAX),
                pick_random(5, 0),
                pick_random(5, u64::MAX)
            ),
            (0, 0, 4)
        );
    }

    #[test]
    fn live_members_share_alike() {
        const DRAWS: u64 = 1 << 16;
        let live = |member: usize| member == 1 || member >= 6;
        let mut counts = [0u32; 8];
        for draw in 0..DRAWS {
            let draw = xxhash_rust::xxh3::xxh3_64(&draw.to_le_bytes());
            counts[pick_random_live(8, draw, live).unwrap()] += 1;
        }
        for (member, count) in counts.into_iter().enumerate() {
            let expected = if live(member) { DRAWS as u32 / 3 } else { 0 };
            assert!(
                count.abs_diff(expected) <= expected / 50,
                "member {member}: {count}"
            );
        }
        assert_eq!(pick_random_live(8, 99, |_| false), None);
        assert_eq!(pick_random_live(0, 99, |_| true), None);
    }
}
