//! SHA-256. Source: FIPS 180-4.

/// Initial state before the first block: the first 32 fractional bits in the square roots for the first eight primes.
pub(super) const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Constant that each round adds.
const ROUNDS: [u32; 64] = round_constants();

/// First 32 bits after the binary point in the cube roots for the first 64 primes.
const fn round_constants() -> [u32; 64] {
    let (mut constants, mut found, mut candidate) = ([0; 64], 0, 2_u128);
    while found < 64 {
        let mut divisor = 2;
        while divisor * divisor <= candidate && !candidate.is_multiple_of(divisor) {
            divisor += 1;
        }
        if divisor * divisor > candidate {
            // The largest root with root³ ≤ candidate × 2^96, bit by bit: the cube root with 32 fractional bits.
            let (mut root, mut bit) = (0_u128, 1_u128 << 35);
            while bit > 0 {
                let tried = root | bit;
                if tried * tried * tried <= candidate << 96 {
                    root = tried;
                }
                bit >>= 1;
            }
            constants[found] = root as u32;
            found += 1;
        }
        candidate += 1;
    }
    constants
}

/// State after compression with a block that has 16 words.
pub(super) fn compress(state: [u32; 8], block: [u32; 16]) -> [u32; 8] {
    let mut schedule = block;
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for (round, constant) in ROUNDS.into_iter().enumerate() {
        let word = if round < 16 { block[round] } else { extend(&mut schedule, round) };
        let choice = (e & f) ^ (!e & g);
        let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let first = h.wrapping_add(high).wrapping_add(choice).wrapping_add(constant).wrapping_add(word);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(low.wrapping_add(majority)));
    }
    let after = [a, b, c, d, e, f, g, h];
    std::array::from_fn(|at| state[at].wrapping_add(after[at]))
}

/// Computes the next schedule word, which replaces the word from sixteen rounds before.
fn extend(schedule: &mut [u32; 16], round: usize) -> u32 {
    let at = |back: usize| schedule[(round - back) % 16];
    let low = at(15).rotate_right(7) ^ at(15).rotate_right(18) ^ (at(15) >> 3);
    let high = at(2).rotate_right(17) ^ at(2).rotate_right(19) ^ (at(2) >> 10);
    let word = at(16).wrapping_add(low).wrapping_add(at(7)).wrapping_add(high);
    schedule[round % 16] = word;
    word
}

/// SHA-256 hash for a message, with padding.
fn hash(message: &[u8]) -> [u8; 32] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    let state = padded.chunks_exact(64).fold(START, |state, block| {
        compress(
            state,
            std::array::from_fn(|word| {
                block[4 * word..4 * word + 4].iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte))
            }),
        )
    });
    std::array::from_fn(|at| state[at / 4].to_be_bytes()[at % 4])
}

/// Hash applied twice: the message is hashed, and then the hash.
pub(super) fn hash_twice(message: &[u8]) -> [u8; 32] {
    hash(&hash(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_standard_s_example_is_met() {
        assert_eq!(hex(&hash(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    /// Bitcoin's first block: version, no previous block, Merkle root for its transactions, time, target, nonce.
    #[test]
    fn bitcoin_s_first_block_is_met() {
        let root = "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a";
        let header = format!("01000000{}{root}29ab5f49ffff001d1dac2b7c", "0".repeat(64));
        let digit = |at: usize| u8::from_str_radix(&header[at..at + 2], 16).unwrap();
        let header: Vec<u8> = (0..header.len()).step_by(2).map(digit).collect();
        let mut number = hash_twice(&header);
        number.reverse();
        assert_eq!(hex(&number), "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f");
    }
}
