//! Bob Jenkins's lookup3.

/// lookup3's `hashlittle` with the initial value 13.
pub(super) fn jenkins(key: &[u8]) -> u32 {
    let start = 0xdead_beefu32.wrapping_add(key.len() as u32).wrapping_add(13);
    let mut state = [start; 3];
    let mut rest = key;
    // The last block, even a full one, is finished differently from the others.
    while let Some((block, more)) = rest.split_first_chunk::<12>()
        && !more.is_empty()
    {
        add(&mut state, block);
        mix(&mut state);
        rest = more;
    }
    if !rest.is_empty() {
        let mut block = [0; 12];
        block[..rest.len()].copy_from_slice(rest);
        add(&mut state, &block);
        finish(&mut state);
    }
    state[2]
}

fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    *a = a.wrapping_sub(*c) ^ c.rotate_left(4);
    *c = c.wrapping_add(*b);
    *b = b.wrapping_sub(*a) ^ a.rotate_left(6);
    *a = a.wrapping_add(*c);
    *c = c.wrapping_sub(*b) ^ b.rotate_left(8);
    *b = b.wrapping_add(*a);
    *a = a.wrapping_sub(*c) ^ c.rotate_left(16);
    *c = c.wrapping_add(*b);
    *b = b.wrapping_sub(*a) ^ a.rotate_left(19);
    *a = a.wrapping_add(*c);
    *c = c.wrapping_sub(*b) ^ b.rotate_left(4);
    *b = b.wrapping_add(*a);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
}
