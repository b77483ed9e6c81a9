//! Bitcoin's proof of work: a search for the nonce with the smallest double SHA-256 hash over a block header.
//!
//! Each thread processes header after header. The first 64 of its 80 bytes are hashed once; for each nonce, the rest is
//! hashed, and then the hash. The smallest hash and its nonce are kept.
//!
//! A search alone needs no memory: the footprint consists of the headers and the results.

mod sha256;

use crate::prelude::*;
use sha256::{START, compress, hash_twice};

/// Threads per CTA. Source: assumed, CUDA's maximum, so that an SM is filled by one of the few CTAs.
const THREADS: u32 = 1024;
/// Words per header. Source: Bitcoin's developer reference, block headers: 80 bytes.
const HEADER: usize = 20;
/// Index of the nonce word in a header. Source: Bitcoin's developer reference, block headers.
const NONCE: usize = 19;
/// Words per hash.
const HASH: usize = 8;
/// Instructions per compression: 64 rounds with 22 instructions and 48 schedule words with 14, if rotations and
/// three-operand logic take one instruction each. Source: counted from FIPS 180-4.
const COMPRESSION: u16 = 64 * 22 + 48 * 14;
/// Instructions to compare a hash with the current best. Source: counted.
const COMPARISON: u16 = 24;

program! {
    /// search for small double SHA-256 hashes: long arithmetic on a stream of headers
    pub(crate) static BITCOIN = "bitcoin",
        "Nakamoto, Bitcoin (2008), hashes by FIPS 180-4; NUMA-GPU, Table 2 (Other-Bitcoin-Crypto)";
    properties: data_independent;
    parameters {
        /// block headers, at scale 1; scales
        headers: count(1..=1 << 26) = 53_000_000,
            "NUMA-GPU, Table 2: 5898 MB in headers of 80 bytes, hashes of 32 and nonces of 4";
        /// nonces tried for each header
        nonces: count(1..=1 << 16) = 4, "assumed: each costs the same arithmetic and no memory";
        /// CTAs, at scale 1; scales with the SMs
        ctas: count(1..=1 << 14) = 60, "NUMA-GPU, Table 2";
    }
    lay_out(name, request, memory) {
        let headers = request.scale.of(headers);
        check_indices(name, headers * HEADER as u64, "words of headers")?;
    }
    struct NonceSearch {
        /// Header words, `[word][header]`
        headers: Array<u32>[headers * HEADER as u64],
        /// `[word][header]`: the smallest hash.
        hashes: Array<u32>[headers * HASH as u64],
        /// Nonce that gives the smallest hash.
        found: Array<u32>[headers],
        count: i32 = headers as i32,
        nonces: u32,
        ctas: u64 = request.scale.of(ctas),
        seed: u64 = request.seed,
    }
}

/// True if `a` is the smaller hash, as a 256-bit number with its lowest byte first.
fn is_smaller(a: [u32; HASH], b: [u32; HASH]) -> bool {
    let number = |hash: [u32; HASH]| std::array::from_fn::<u32, HASH, _>(|at| hash[HASH - 1 - at].swap_bytes());
    number(a) < number(b)
}

/// Smallest hash for a header over `nonces` nonces from the header's own nonce on, and the nonce found.
fn search(header: [u32; HEADER], nonces: u32) -> [u32; HASH + 1] {
    let [first @ .., _, _, _, _] = header;
    let middle = compress(START, first);
    let mut tail = [0; 16];
    tail[..4].copy_from_slice(&header[16..]);
    tail[4] = 1 << 31;
    tail[15] = 32 * HEADER as u32;
    let mut best = ([u32::MAX; HASH], 0);
    for nonce in (0..nonces).map(|turn| header[NONCE].wrapping_add(turn)) {
        tail[3] = nonce;
        let mut second = [0; 16];
        second[..HASH].copy_from_slice(&compress(middle, tail));
        second[HASH] = 1 << 31;
        second[15] = 32 * HASH as u32;
        let hash = compress(START, second);
        if is_smaller(hash, best.0) {
            best = (hash, nonce);
        }
    }
    std::array::from_fn(|at| if at < HASH { best.0[at] } else { best.1 })
}

impl NonceSearch {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let threads = cta.grid() as i32 * THREADS as i32;
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            let left = thread.map(|thread| (self.count - thread + threads - 1).max(0) / threads);
            let rounds = warp.compute(ComputeClass::Int, 4, left.cast::<u32>());
            warp.repeat(rounds, |warp, round| {
                let index = warp.compute(ComputeClass::Int, 1 + ADDRESS, thread + round as i32 * threads);
                let header: [_; HEADER] =
                    std::array::from_fn(|word| warp.load(self.headers, index + word as i32 * self.count));
                let results =
                    warp.calculate(ComputeClass::Int, COMPRESSION, header, |header| search(header, self.nonces));
                for _ in 0..self.nonces {
                    warp.compute(ComputeClass::Int, 2 * COMPRESSION + COMPARISON, ());
                }
                let [hash @ .., nonce] = results;
                for (word, value) in (0..).zip(hash) {
                    warp.store(self.hashes, index + word * self.count, value);
                }
                warp.store(self.found, index, nonce);
            });
        });
    }

    fn word(&self, index: u64) -> u32 {
        noise::noise(self.seed, index) as u32
    }
}

impl Instance for NonceSearch {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.headers, |index| self.word(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.headers);
        host.launch(Grid::new("search", self.ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.hashes);
        host.copy_to_host(self.found);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let count = self.count as u64;
        for index in 0..count {
            let mut header: [u32; HEADER] = std::array::from_fn(|word| self.word(word as u64 * count + index));
            let first = header[NONCE];
            let tried = (0..self.nonces).map(|turn| {
                header[NONCE] = first.wrapping_add(turn);
                let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
                let mut number = hash_twice(&bytes);
                number.reverse();
                (number, header[NONCE])
            });
            let best = tried.min();
            let mut found: Vec<u8> = (0..HASH as u64)
                .flat_map(|word| memory.read(self.hashes, word * count + index).to_be_bytes())
                .collect();
            found.reverse();
            let matches =
                |(number, nonce): ([u8; 32], u32)| number[..] == found && nonce == memory.read(self.found, index);
            if !best.is_some_and(matches) {
                return Err(format!("header {index} has another smallest hash than {found:x?}"));
            }
        }
        Ok(())
    }
}
