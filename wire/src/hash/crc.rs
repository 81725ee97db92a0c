//! Cyclic redundancy checks as hashes.

/// CRC-16/XMODEM's table (polynomial 0x1021, most significant bit first).
const XMODEM: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder << 1) ^ if remainder & 0x8000 != 0 { 0x1021 } else { 0 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

/// twemproxy's crc16: CRC-16/XMODEM in an accumulator of 32 bits that is never cut to 16, so that the upper
/// half keeps what the shifts left there. The low half is the plain CRC.
pub(super) fn crc16(key: &[u8]) -> u32 {
    key.iter().fold(0u32, |crc, &byte| {
        let row = (crc >> 8) as u8 ^ byte;
        (crc << 8) ^ u32::from(XMODEM[usize::from(row)])
    })
}

/// libmemcached's crc32: bits 16 to 30 of the CRC.
pub(super) fn crc32(key: &[u8]) -> u32 {
    (crc32a(key) >> 16) & 0x7fff
}

/// The CRC-32 of zlib and Ethernet.
pub(super) fn crc32a(key: &[u8]) -> u32 {
    crc32fast::hash(key)
}
