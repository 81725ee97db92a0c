//! The sizes of the blocks that mimalloc hands out, so that the counted bytes are the allocated bytes.

/// The least size of a block for this many bytes: there are four from one power of two to the next.
pub(crate) fn size_class(length: usize) -> usize {
    let step = (length.next_power_of_two() / 8).max(16);
    length.next_multiple_of(step)
}
