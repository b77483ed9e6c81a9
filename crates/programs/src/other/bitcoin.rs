//! Bitcoin's proof of work: a search for the nonce with the smallest double SHA-256 hash over a block header.
//!
//! Each thread processes header after header. The first 64 of its 80 bytes are hashed once; for each nonce, the rest is
//! hashed, and then the hash. The smallest hash and its nonce are kept.
//!
//! A search alone needs no memory: the footprint consists of the headers and the results.

mod sha256;

use sha256::{START, compress, hash_twice};
use tombolo_workload::bench::{ADDRESS, Benchmark, Instance, Request, WorkloadError, check_indices};
use tombolo_workload::noise;
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Memory, Scaling};

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

static PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "headers",
        kind: ParameterKind::Count { low: 1, high: 1 << 26 },
        default: "53000000",
        about: "block headers, at scale 1; scales",
        source: "NUMA-GPU, Table 2: 5898 MB in headers of 80 bytes, hashes of 32 and nonces of 4",
    },
    Parameter {
        name: "nonces",
        kind: ParameterKind::Count { low: 1, high: 1 << 16 },
        default: "4",
        about: "nonces tried for each header",
        source: "assumed: each costs the same arithmetic and no memory",
    },
    Parameter {
        name: "ctas",
        kind: ParameterKind::Count { low: 1, high: 1 << 14 },
        default: "60",
        about: "CTAs, at scale 1; scales with the SMs",
        source: "NUMA-GPU, Table 2",
    },
];

/// The Bitcoin benchmark.
pub(crate) static BITCOIN: Benchmark = Benchmark {
    name: "bitcoin",
    about: "search for small double SHA-256 hashes: long arithmetic on a stream of headers",
    source: "Nakamoto, Bitcoin (2008), hashes by FIPS 180-4; NUMA-GPU, Table 2 (Other-Bitcoin-Crypto)",
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct NonceSearch {
    /// Header words, `[word][header]`
    headers: Array<u32>,
    /// `[word][header]`: the smallest hash.
    hashes: Array<u32>,
    /// Nonce that gives the smallest hash.
    found: Array<u32>,
    count: i32,
    nonces: u32,
    ctas: u64,
    seed: u64,
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let headers = request.scale.of(request.values.count("headers"));
    check_indices(name, headers * HEADER as u64, "words of headers")?;
    Ok(Box::new(NonceSearch {
        headers: memory.array("headers", headers * HEADER as u64, Scaling::Scales),
        hashes: memory.array("hashes", headers * HASH as u64, Scaling::Scales),
        found: memory.array("found", headers, Scaling::Scales),
        count: headers as i32,
        nonces: request.values.count("nonces") as u32,
        ctas: request.scale.of(request.values.count("ctas")),
        seed: request.seed,
    }))
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
