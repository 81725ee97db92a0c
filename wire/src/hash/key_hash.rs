//! Hashes of keys: 32-bit numbers.

use md5::{Digest, Md5};

use super::{
    crc::{crc16, crc32, crc32a},
    fnv::{fnv1_32, fnv1_64, fnv1a_32, fnv1a_32_four, fnv1a_64, fnv1a_64_four},
    hsieh::hsieh,
    jenkins::jenkins,
    murmur::murmur,
    one_at_a_time::one_at_a_time,
};

/// The hashes that libmemcached and twemproxy offer for keys, with their quirks. Where their C code adds a
/// signed `char`, bytes from 0x80 up are sign-extended, because every client must agree on the place of a
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeyHash {
    /// Bob Jenkins's one-at-a-time.
    OneAtATime,
    /// The first four bytes of the MD5 digest, little endian.
    Md5,
    /// CRC-16/XMODEM in a 32-bit accumulator.
    Crc16,
    /// Bits 16 to 30 of the CRC-32.
    Crc32,
    /// The CRC-32 of zlib.
    Crc32a,
    /// Low half of the 64-bit FNV-1.
    Fnv1_64,
    /// Low half of the 64-bit FNV-1a; twemproxy's default.
    #[default]
    Fnv1a64,
    /// FNV-1.
    Fnv1_32,
    /// FNV-1a.
    Fnv1a32,
    /// Paul Hsieh's SuperFastHash.
    Hsieh,
    /// 32-bit MurmurHash2.
    Murmur,
    /// Bob Jenkins's lookup3.
    Jenkins,
}

impl KeyHash {
    /// All hashes.
    pub const ALL: [Self; 12] = [
        Self::OneAtATime,
        Self::Md5,
        Self::Crc16,
        Self::Crc32,
        Self::Crc32a,
        Self::Fnv1_64,
        Self::Fnv1a64,
        Self::Fnv1_32,
        Self::Fnv1a32,
        Self::Hsieh,
        Self::Murmur,
        Self::Jenkins,
    ];

    /// Its name in twemproxy's `hash:`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneAtATime => "one_at_a_time",
            Self::Md5 => "md5",
            Self::Crc16 => "crc16",
            Self::Crc32 => "crc32",
            Self::Crc32a => "crc32a",
            Self::Fnv1_64 => "fnv1_64",
            Self::Fnv1a64 => "fnv1a_64",
            Self::Fnv1_32 => "fnv1_32",
            Self::Fnv1a32 => "fnv1a_32",
            Self::Hsieh => "hsieh",
            Self::Murmur => "murmur",
            Self::Jenkins => "jenkins",
        }
    }

    /// The hash with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.name() == name)
    }

    /// The key's number.
    #[inline]
    pub fn hash(self, key: &[u8]) -> u32 {
        match self {
            Self::OneAtATime => one_at_a_time(key),
            Self::Md5 => md5(key),
            Self::Crc16 => crc16(key),
            Self::Crc32 => crc32(key),
            Self::Crc32a => crc32a(key),
            Self::Fnv1_64 => fnv1_64(key),
            Self::Fnv1a64 => fnv1a_64(key),
            Self::Fnv1_32 => fnv1_32(key),
            Self::Fnv1a32 => fnv1a_32(key),
            Self::Hsieh => hsieh(key),
            Self::Murmur => murmur(key),
            Self::Jenkins => jenkins(key),
        }
    }
}

impl KeyHash {
    /// The numbers of four keys. Some hashes compute four together faster than one after the other.
    #[inline]
    pub(super) fn hash_four(self, keys: [&[u8]; 4]) -> [u32; 4] {
        match self {
            Self::Fnv1a64 => fnv1a_64_four(keys),
            Self::Fnv1a32 => fnv1a_32_four(keys),
            _ => keys.map(|key| self.hash(key)),
        }
    }
}

/// This is not inlined, as it needs a stack frame that the short hashes would then set up as well.
#[inline(never)]
fn md5(key: &[u8]) -> u32 {
    let [a, b, c, d, ..]: [u8; 16] = Md5::digest(key).into();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::KeyHash;

    // Long because it is a table.
    #[test]
    fn known_answers() {
        // In the order of `KeyHash::ALL`.
        let many = [b'k'; 250];
        let table: &[(&[u8], [u32; 12])] = &[
            (
                b"",
                [
                    0, 3649838548, 0, 0, 0, 2216829733, 2216829733, 2166136261, 2166136261, 0, 0, 3735928572,
                ],
            ),
            (
                b"a",
                [
                    3392050242, 3111502092, 31879, 26807, 3904355907, 2248259518, 2248273036, 84696446,
                    3826002220, 2472816263, 1262581116, 3768813200,
                ],
            ),
            (
                b"key",
                [
                    3917505287, 2316004924, 3723194619, 2704, 2324736937, 1804782626, 911937772, 1183067778,
                    1746258028, 4262080369, 2006186433, 3031751051,
                ],
            ),
            (
                b"foo",
                [
                    596015325, 3675831724, 205303702, 3187, 2356372769, 1805727027, 4275688823, 1083137555,
                    2851307223, 1993659431, 3303027599, 2583187353,
                ],
            ),
            (
                b"key1",
                [
                    3203718188, 2497097154, 3950027749, 11356, 744252496, 3396394487, 1555933063, 2215982743,
                    927623783, 2037332752, 1050118838, 3541214983,
                ],
            ),
            (
                b"hello world",
                [
                    1045060183, 3141252702, 4060494820, 3402, 222957957, 2979073647, 37540583, 1418570095,
                    3582672807, 1333368947, 1578702139, 355681275,
                ],
            ),
            (
                b"user:1000",
                [
                    3043211087, 781738503, 3781445233, 8052, 2675185635, 3550362913, 2927313545, 2796551329,
                    1350311305, 3723237737, 2384768711, 76303748,
                ],
            ),
            (
                b"{tag}suffix",
                [
                    1969962828, 2471677491, 4144007327, 20957, 1373497962, 823867226, 447683252, 1314944890,
                    3009170932, 8968994, 271934133, 2359242465,
                ],
            ),
            (
                b"0123456789abcdef",
                [
                    4028760775, 2377069120, 3596871845, 26820, 1757737011, 998436033, 3853346685, 2652598081,
                    2277258045, 3097489547, 43138349, 3760384329,
                ],
            ),
            (
                b"caf\xc3\xa9",
                [
                    3650908318, 3833532679, 4129724007, 6317, 2561491637, 2315714289, 3472276361, 3598905713,
                    1970454601, 3728705621, 3658586143, 3412207021,
                ],
            ),
            (
                &many,
                [
                    1693084816, 2138779539, 412748606, 1175, 77036481, 3994655023, 2360608987, 738814959,
                    3689734427, 1612577492, 3635457483, 1257934000,
                ],
            ),
        ];
        for (key, answers) in table {
            for (hash, answer) in KeyHash::ALL.into_iter().zip(answers) {
                assert_eq!(
                    hash.hash(key),
                    *answer,
                    "{} of {}",
                    hash.name(),
                    key.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn names_lead_back() {
        for hash in KeyHash::ALL {
            assert_eq!(KeyHash::from_name(hash.name()), Some(hash));
        }
        assert_eq!(KeyHash::from_name("sha1"), None);
        assert_eq!(KeyHash::default().name(), "fnv1a_64");
    }
}
