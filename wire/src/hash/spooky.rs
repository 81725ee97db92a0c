//! Bob Jenkins's SpookyHash V2 (public domain), for little-endian words at any alignment.

/// Messages of at least this many bytes take the long form.
const LONG: usize = 192;
/// Words of the long form's state.
const WORDS: usize = 12;
/// An odd number of irregular bits, for state that no seed fills.
const FILL: u64 = 0xdead_beef_dead_beef;

/// SpookyHash V2, 64 bits.
pub fn spooky64(message: &[u8], seed: u64) -> u64 {
    if message.len() < LONG {
        short(message, seed)
    } else {
        long(message, seed)
    }
}

/// SpookyHash V2, 32 bits.
pub fn spooky32(message: &[u8], seed: u32) -> u32 {
    spooky64(message, u64::from(seed)) as u32
}

fn short(message: &[u8], seed: u64) -> u64 {
    let mut state = [seed, seed, FILL, FILL];
    let (blocks, mut tail) = message.as_chunks::<32>();
    for block in blocks {
        let [a, b, c, d] = words(block);
        state[2] = state[2].wrapping_add(a);
        state[3] = state[3].wrapping_add(b);
        mix_short(&mut state);
        state[0] = state[0].wrapping_add(c);
        state[1] = state[1].wrapping_add(d);
    }
    if let Some((half, rest)) = tail.split_first_chunk::<16>() {
        let [a, b] = words(half);
        state[2] = state[2].wrapping_add(a);
        state[3] = state[3].wrapping_add(b);
        mix_short(&mut state);
        tail = rest;
    }
    state[3] = state[3].wrapping_add((message.len() as u64) << 56);
    let [c, d] = if tail.is_empty() {
        [FILL, FILL]
    } else {
        words(tail)
    };
    state[2] = state[2].wrapping_add(c);
    state[3] = state[3].wrapping_add(d);
    finish_short(&mut state);
    state[0]
}

/// Each step changes three of the four words. After four steps every word has been in every place.
fn mix_short(state: &mut [u64; 4]) {
    const ROTATIONS: [u32; 12] = [50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36];
    for (step, rotation) in ROTATIONS.into_iter().enumerate() {
        let (a, b, c) = ((step + 2) % 4, (step + 3) % 4, step % 4);
        state[a] = state[a].rotate_left(rotation).wrapping_add(state[b]);
        state[c] ^= state[a];
    }
}

fn finish_short(state: &mut [u64; 4]) {
    const ROTATIONS: [u32; 11] = [15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63];
    for (step, rotation) in ROTATIONS.into_iter().enumerate() {
        let (a, b) = ((step + 3) % 4, (step + 2) % 4);
        state[a] ^= state[b];
        state[b] = state[b].rotate_left(rotation);
        state[a] = state[a].wrapping_add(state[b]);
    }
}

fn long(message: &[u8], seed: u64) -> u64 {
    let mut state = [
        seed, seed, FILL, seed, seed, FILL, seed, seed, FILL, seed, seed, FILL,
    ];
    let (blocks, tail) = message.as_chunks::<{ 8 * WORDS }>();
    for block in blocks {
        mix_long(&mut state, words(block));
    }
    let mut last: [u64; WORDS] = words(tail);
    // The last byte of the last block is the number of message bytes in it; a tail never reaches that far.
    last[WORDS - 1] |= (tail.len() as u64) << 56;
    for (word, more) in state.iter_mut().zip(last) {
        *word = word.wrapping_add(more);
    }
    for _ in 0..3 {
        finish_long(&mut state);
    }
    state[0]
}

fn mix_long(state: &mut [u64; WORDS], block: [u64; WORDS]) {
    const ROTATIONS: [u32; WORDS] = [11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46];
    for (i, (word, rotation)) in block.into_iter().zip(ROTATIONS).enumerate() {
        state[i] = state[i].wrapping_add(word);
        state[(i + 2) % WORDS] ^= state[(i + 10) % WORDS];
        state[(i + 11) % WORDS] ^= state[i];
        state[i] = state[i].rotate_left(rotation);
        state[(i + 11) % WORDS] = state[(i + 11) % WORDS].wrapping_add(state[(i + 1) % WORDS]);
    }
}

fn finish_long(state: &mut [u64; WORDS]) {
    const ROTATIONS: [u32; WORDS] = [44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54];
    for (i, rotation) in ROTATIONS.into_iter().enumerate() {
        let (before, next, after) = ((i + 11) % WORDS, (i + 1) % WORDS, (i + 2) % WORDS);
        state[before] = state[before].wrapping_add(state[next]);
        state[after] ^= state[before];
        state[next] = state[next].rotate_left(rotation);
    }
}

/// The first `N` little-endian words, zeros beyond the end.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (whole, tail) = bytes.as_chunks::<8>();
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let Some(word) = words.get_mut(whole.len()) {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        *word = u64::from_le_bytes(last);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{spooky32, spooky64};

    #[test]
    fn known_answers() {
        let long = [b'a'; 200];
        let table: [(&[u8], u32, u32); 7] = [
            (b"key0", 75843317, 998436795),
            (b"key1", 1197688624, 3145228377),
            (b"key2", 316999207, 2780384968),
            (b"foo", 827313959, 2815030509),
            (b"abc:12:def", 1297931842, 2309438699),
            (b"user:1000", 3078620282, 1158809492),
            (&long, 2470028338, 934460164),
        ];
        for (key, zero, weighted_ch3) in table {
            assert_eq!(spooky32(key, 0), zero, "{}", key.escape_ascii());
            assert_eq!(spooky32(key, 0xface_2014), weighted_ch3, "{}", key.escape_ascii());
        }
    }

    /// Lengths of every kind, checked against PyPI's spookyhash 2.1.1: byte i of n is (31 i + n) mod 256, the
    /// seeds are 0xdead0000beef0000 + n and n.
    #[test]
    fn every_kind_of_length() {
        let table = [
            (0usize, 0x0de1a51aadf62289u64, 0x6bf50919u32),
            (1usize, 0xdd3fd0c00abd3c56u64, 0x484d3ecdu32),
            (3usize, 0xdeebafcc68695f09u64, 0x4302e13cu32),
            (4usize, 0xa18fe5042332eee4u64, 0xef253b9au32),
            (7usize, 0x3190d28afe44e870u64, 0x36e0d07fu32),
            (8usize, 0x2d86d0589358e51bu64, 0x3db2aebau32),
            (9usize, 0x5d018b0b63f9b892u64, 0x151ade67u32),
            (11usize, 0x268dab7919606f27u64, 0x039dee8au32),
            (12usize, 0x25682dfd16146606u64, 0xfe3a075fu32),
            (13usize, 0xb4d96e336df75a40u64, 0x5b619d86u32),
            (15usize, 0x17410a4b1a46094du64, 0x55cd56cdu32),
            (16usize, 0xd9cb7f44b95dde49u64, 0x6b44972fu32),
            (17usize, 0x1b03b1a9e29bba27u64, 0xb1c50d8bu32),
            (31usize, 0x52c73c6e5d7b918au64, 0xe466b0b9u32),
            (32usize, 0x1c17ee79de3d9297u64, 0xefb8da7du32),
            (33usize, 0x0becc6eaaf7b39b0u64, 0x9a411bafu32),
            (47usize, 0x63992ca84649ac85u64, 0x5d70355bu32),
            (48usize, 0x2a44365174b0e22du64, 0x4bdfec34u32),
            (63usize, 0x811484ac480a6774u64, 0xad8ea7e1u32),
            (64usize, 0xa22a2e947dd70e84u64, 0x71a5547eu32),
            (100usize, 0x7139ea0b0d89e77bu64, 0x40f877dfu32),
            (191usize, 0x7b894a18e51c704bu64, 0x13e0448cu32),
            (192usize, 0xc55f20b98c5c37abu64, 0x64cacdbcu32),
            (193usize, 0xb4a5a2911f1f7436u64, 0x03cb1e59u32),
            (195usize, 0xb0984517b9c1149eu64, 0x53c51fceu32),
            (287usize, 0x506a6e02f2c8a0f2u64, 0xcec5b6a8u32),
            (288usize, 0xfa91c9e4fb42ecb0u64, 0xfd8314e9u32),
            (289usize, 0x50f1733303ce75dau64, 0x1443f1d6u32),
            (383usize, 0xe13e637ee4afe0f7u64, 0xc210342au32),
            (384usize, 0x9bacde2d83472840u64, 0x1b45d5f7u32),
            (500usize, 0x9abd02867524f720u64, 0xb21d284fu32),
        ];
        for (length, wide, narrow) in table {
            let message: Vec<u8> = (0..length).map(|i| (31 * i + length) as u8).collect();
            assert_eq!(
                spooky64(&message, 0xdead_0000_beef_0000 + length as u64),
                wide,
                "{length}"
            );
            assert_eq!(spooky32(&message, length as u32), narrow, "{length}");
        }
    }
}
