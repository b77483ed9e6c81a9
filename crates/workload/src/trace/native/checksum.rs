//! Checksum function for the native format.

/// Multiplier; odd, because multiplication by an odd number loses no information. Source: the 64-bit FNV-1a prime.
const PRIME: u64 = 0x0000_0100_0000_01b3;
/// Initial state. Source: the 64-bit FNV-1a offset basis.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over little-endian words with eight bytes, plus a rotation from high bits to low bits. Each step is a
/// bijection in both state and word, and damage within a single word is always detected.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let step = |state: u64, word: u64| (state ^ word).wrapping_mul(PRIME).rotate_left(29);
    let mut words = bytes.chunks_exact(8);
    let mut state = BASIS;
    for word in &mut words {
        state = step(state, u64::from_le_bytes(word.try_into().expect("chunks of eight")));
    }
    for byte in words.remainder() {
        state = step(state, u64::from(*byte));
    }
    step(state, bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_bit_and_any_length_shows() {
        let bytes: Vec<u8> = (0..29).collect();
        let whole = checksum(&bytes);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&changed), whole);
        }
        assert_ne!(checksum(&[]), checksum(&[0]));
        assert_ne!(checksum(&[0; 8]), checksum(&[0; 16]));
    }
}
