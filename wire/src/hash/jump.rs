//! Jump consistent hash (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014).

/// The bucket of `number` among `buckets`. Growing from m to m + 1 buckets moves only keys to the new one, so
/// only the last one can leave cheaply.
pub(super) fn jump(mut number: u64, buckets: usize) -> usize {
    let mut bucket = 0;
    let mut next = 0;
    // While `next` is within range, the key jumped to it when the number of buckets reached it.
    while next < buckets as u64 {
        bucket = next;
        number = number.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let draw = ((number >> 33) + 1) as f64;
        next = ((bucket + 1) as f64 * ((1u64 << 31) as f64 / draw)) as u64;
    }
    bucket as usize
}

#[cfg(test)]
mod tests {
    use super::jump;

    #[test]
    fn known_answers() {
        for (number, buckets, bucket) in [
            (1, 1, 0),
            (42, 57, 43),
            (0xdead_10cc, 1, 0),
            (0xdead_10cc, 666, 361),
            (256, 1024, 520),
        ] {
            assert_eq!(jump(number, buckets), bucket);
        }
    }
}
