//! Lonestar's Delaunay mesh refinement: triangles with small angles are repaired by new points until no bad triangle is
//! left.
//!
//! A thread takes a bad triangle from the worklist and finds its cavity: the triangles whose circles contain the new
//! point, which is the bad triangle's circumcentre. Cavities from several threads may overlap. Each thread therefore
//! marks the triangles to change with its number. After all threads have marked, only threads whose marks all survive
//! continue: they replace their cavities by triangles around the new point, and put bad new triangles on the next
//! worklist. The remaining threads retry in the next round.
//!
//! Each round is one cooperative kernel, with grid barriers between the three steps. The smallest number wins, so the
//! outcome is deterministic. Coordinates are integers, so that all decisions are exact.

mod cavity;
mod geometry;
mod mesh;

use self::cavity::{Cavities, Cavity, MeshArrays};
use self::geometry::{Point, is_bad};
use self::mesh::{NONE, Triangulation};
use crate::prelude::*;

/// Threads per CTA. Source: assumed, the usual size.
const THREADS: u32 = 256;
/// Memory order for marks and counters: relaxed, because CTAs on all GPUs share them.
const SHARED: Order = Order::relaxed(Scope::Sys);

program! {
    /// mesh refinement: cavities of pointers, marked and rebuilt, barriers across few CTAs
    pub(crate) static DMR = "dmr", "LonestarGPU dmr; NUMA-GPU, Table 2 (Lonestar-DMR)";
    parameters {
        /// points along each side of the square, at scale 1; scales by the root
        side: count(1..=1 << 14) = 1040, "NUMA-GPU, Table 2: 248 MB; LonestarGPU's r1M has as many points";
        /// triangles that storage has room for, by triangle at the start
        room: count(1..=64) = 2, "assumed: enough for the rounds; LonestarGPU dmr sizes its arrays by a factor, too";
        /// rounds over a worklist, at most
        rounds: count(1..=100_000) = 2, "assumed: the first two rounds take most of the bad triangles";
        /// CTAs of the cooperative kernel, at scale 1; scales with the SMs
        ctas: count(1..=128) = 82, "NUMA-GPU, Table 2";
    }
    lay_out(name, request, memory) {
        let side = request.scale.side_of(side);
        let ctas = request.scale.of(ctas);
        let (points, triangles) = mesh::size(side);
        let room = triangles * room;
        check_indices(name, 4 * room, "corners of triangles")?;
        // A new point adds two triangles, or one triangle at the border.
        let points = points + (room - triangles) / 2 + side;
    }
    struct Refinement {
        arrays: MeshArrays = MeshArrays {
            point: memory.array("point", 2 * points, Scaling::Scales),
            corner: memory.array("corner", 4 * room, Scaling::Scales),
            neighbour: memory.array("neighbour", 4 * room, Scaling::Scales),
        },
        /// State per triangle: [`BAD`] for a bad triangle, [`HOPELESS`] if it cannot be repaired.
        bad: Array<u32>[room],
        /// Lowest mark per triangle: the pass number (a later pass is lower) × 2^32 + the thread's number.
        mark: Array<u64>[room],
        /// Bad triangles in this round and the next.
        worklist: [Array<u32>; 2]["worklist0", "worklist1"; room],
        counts: Array<u32>[4, fixed],
        barrier: GridBarrier = GridBarrier::lay_out(memory, ctas, Scope::Sys),
        side, rounds: u64,
        ctas: u32,
        seed: u64 = request.seed,
    }
}

/// Positions in [`Refinement::counts`]: triangles, points, triangles on the next worklist; flag for full storage.
const TRIANGLES: usize = 0;
const POINTS: usize = 1;
const LISTED: usize = 2;
const FULL: usize = 3;

/// A triangle to repair.
const BAD: u32 = 1;
/// A triangle that leaves no room for a point.
const HOPELESS: u32 = 2;

/// Parameters for a round.
#[derive(Clone, Copy)]
struct Round {
    /// Index of the worklist to read.
    from: usize,
    /// Number of triangles on the worklist.
    items: u32,
    /// Number of passes before this round; a pass processes one triangle per thread.
    passes: u32,
}

/// State for a warp's lanes in a pass.
struct Attempt {
    cavities: Cavities,
    bad: Lanes<u32>,
    /// Lanes with a triangle that is still bad.
    tries: Lanes<bool>,
    /// Lanes whose marks all survive.
    wins: Lanes<bool>,
    mark: Lanes<u64>,
}

impl Refinement {
    /// Finds and lists the bad triangles.
    fn find_bad(&self, cta: &mut Cta<'_>, triangles: u32) {
        let stride = (cta.grid() * cta.threads()) as usize;
        cta.each_warp(|warp| {
            for start in (0..triangles).step_by(stride) {
                let triangle = warp.compute(ComputeClass::Int, 1, warp.global_thread().cast::<u32>() + start);
                warp.when(triangle.lt(triangles), |warp| {
                    let loaded = self.arrays.load(warp, triangle);
                    let bad = warp.compute(ComputeClass::Fp64, 20, loaded.map(|loaded| is_bad(loaded.points)));
                    warp.store(self.bad, triangle, bad.map(u32::from));
                    warp.when(bad, |warp| self.append(warp, 0, triangle));
                });
            }
        });
    }

    /// Puts a triangle from each lane on a worklist.
    fn append(&self, warp: &mut Warp<'_>, list: usize, triangle: Lanes<u32>) {
        let place = self.add_to_counter(warp, LISTED, Lanes::all(1));
        let fits = place.lt(self.bad.len() as u32);
        warp.when_else(
            fits,
            |warp| warp.store(self.worklist[list], place, triangle),
            |warp| warp.store(self.counts, Lanes::all(FULL as i32), 1),
        );
    }

    /// Adds to a counter; returns its previous value.
    fn add_to_counter(&self, warp: &mut Warp<'_>, counter: usize, items: Lanes<u32>) -> Lanes<u32> {
        let before = warp.atomic(Reduction::Add, self.counts, Lanes::all(counter as i32), items, SHARED);
        warp.compute(ComputeClass::Int, 0, before)
    }

    async fn refine(&self, cta: &mut Cta<'_>, round: Round) {
        let stride = (cta.grid() * cta.threads()) as usize;
        for (start, pass) in (0..round.items).step_by(stride).zip(round.passes..) {
            let mut attempts = Vec::new();
            cta.each_warp(|warp| attempts.push(self.attempt(warp, round, start, pass)));
            self.barrier.meet(cta, 3 * pass + 1).await;
            let mut each = attempts.iter_mut();
            cta.each_warp(|warp| each.by_ref().take(1).for_each(|attempt| self.decide(warp, attempt)));
            self.barrier.meet(cta, 3 * pass + 2).await;
            let mut each = attempts.iter();
            cta.each_warp(|warp| each.by_ref().take(1).for_each(|attempt| self.conclude(warp, round, attempt)));
            self.barrier.meet(cta, 3 * pass + 3).await;
        }
    }

    /// Finds the cavity for each lane's triangle and marks the triangles to change.
    fn attempt(&self, warp: &mut Warp<'_>, round: Round, start: u32, pass: u32) -> Attempt {
        let item = warp.compute(ComputeClass::Int, 1, warp.global_thread().cast::<u32>() + start);
        let mark = item.map(|item| u64::from(u32::MAX - pass) << 32 | u64::from(item));
        let mut attempt = Attempt {
            cavities: std::array::from_fn(|_| Cavity::default()),
            bad: Lanes::all(0),
            tries: Lanes::all(false),
            wins: Lanes::all(false),
            mark,
        };
        warp.when(item.lt(round.items), |warp| {
            let bad = warp.load(self.worklist[round.from], item);
            let still = warp.load(self.bad, bad).eq(BAD);
            attempt.bad = bad;
            warp.when(still, |warp| {
                attempt.tries = warp.update(attempt.tries, Lanes::all(true));
                attempt.cavities = self.arrays.find(warp, bad);
                self.each_claim(warp, &attempt.cavities, |warp, triangle| {
                    warp.reduce(Reduction::Min, self.mark, triangle, mark, SHARED);
                });
            });
        });
        attempt
    }

    /// Runs `body` with each triangle that a lane's cavity would change.
    fn each_claim(&self, warp: &mut Warp<'_>, cavities: &Cavities, mut body: impl FnMut(&mut Warp<'_>, Lanes<u32>)) {
        let hopeful = |cavity: &Cavity| if cavity.hopeless { Vec::new() } else { cavity.claims() };
        let claims: Vec<Vec<u32>> = cavities.iter().map(hopeful).collect();
        let count = Lanes::by_lane(|lane| claims[lane as usize].len() as u32);
        warp.repeat(count, |warp, at| {
            let triangle = map_active(warp, |lane| claims[lane as usize][at as usize]);
            body(warp, triangle);
        });
    }

    /// Checks if all marks in each lane survive.
    fn decide(&self, warp: &mut Warp<'_>, attempt: &mut Attempt) {
        let mut wins = attempt.tries;
        warp.when(attempt.tries, |warp| {
            self.each_claim(warp, &attempt.cavities, |warp, triangle| {
                let stands = warp.load(self.mark, triangle).eq(attempt.mark);
                let stands = warp.compute(ComputeClass::Int, 2, stands & wins);
                wins = warp.update(wins, stands);
            });
        });
        attempt.wins = wins;
    }

    /// Replaces the winners' cavities; puts the losers' triangles on the next worklist.
    fn conclude(&self, warp: &mut Warp<'_>, round: Round, attempt: &Attempt) {
        let hopeless = map_active(warp, |lane| attempt.cavities[lane as usize].hopeless);
        warp.when(attempt.tries & hopeless, |warp| warp.store(self.bad, attempt.bad, HOPELESS));
        warp.when(attempt.tries & !hopeless & !attempt.wins, |warp| self.append(warp, 1 - round.from, attempt.bad));
        warp.when(attempt.wins & !hopeless, |warp| {
            let cavities = &attempt.cavities;
            let ring = map_active(warp, |lane| cavities[lane as usize].ring.len() as u32);
            let more = map_active(warp, |lane| {
                let Cavity { ring, triangles, .. } = &cavities[lane as usize];
                (ring.len() - triangles.len()) as u32
            });
            let first = self.add_to_counter(warp, TRIANGLES, more);
            let centre = self.add_to_counter(warp, POINTS, Lanes::all(1));
            let room = self.arrays.point.len() as u32 / 2;
            let fits = (first + more).le(self.bad.len() as u32) & centre.lt(room);
            warp.when_else(
                fits,
                |warp| {
                    self.put_point(warp, cavities, centre);
                    warp.repeat(ring, |warp, at| self.put_triangle(warp, round, attempt, at as usize, [first, centre]));
                    // A border split may leave the bad triangle unchanged.
                    let left =
                        map_active(warp, |lane| !cavities[lane as usize].triangles.contains(&attempt.bad.lane(lane)));
                    warp.when(left, |warp| self.append(warp, 1 - round.from, attempt.bad));
                },
                |warp| warp.store(self.counts, Lanes::all(FULL as i32), 1),
            );
        });
    }

    fn put_point(&self, warp: &mut Warp<'_>, cavities: &Cavities, centre: Lanes<u32>) {
        let along = |axis: usize| map_active(warp, |lane| cavities[lane as usize].centre[axis] as f64);
        let coordinates = [along(0), along(1)];
        warp.store_vector(self.arrays.point, centre * 2, coordinates);
    }

    /// Stores the triangle between side `at` in each lane's ring and the new point. It goes to a slot from the cavity,
    /// or to a slot allocated from `first` on.
    fn put_triangle(
        &self,
        warp: &mut Warp<'_>,
        round: Round,
        attempt: &Attempt,
        at: usize,
        [first, centre]: [Lanes<u32>; 2],
    ) {
        let cavity = |lane: u32| &attempt.cavities[lane as usize];
        let slot_of = |lane: u32, at: usize| {
            let reused = cavity(lane).triangles.get(at).copied();
            reused.unwrap_or_else(|| first.lane(lane) + (at - cavity(lane).triangles.len()) as u32)
        };
        let beside = |lane: u32, end: usize| {
            let corner = cavity(lane).ring[at].ends[end];
            let other = cavity(lane).ring.iter().position(|side| side.ends[1 - end] == corner);
            other.map_or(NONE, |other| slot_of(lane, other))
        };
        let slot = map_active(warp, |lane| slot_of(lane, at));
        let end = |end: usize| map_active(warp, |lane| cavity(lane).ring[at].ends[end]);
        let corners = [end(0), end(1), centre, Lanes::all(0)];
        let outer = map_active(warp, |lane| cavity(lane).ring[at].outer);
        let next = map_active(warp, |lane| beside(lane, 1));
        let previous = map_active(warp, |lane| beside(lane, 0));
        let slot = warp.compute(ComputeClass::Int, 8, slot);
        warp.store_vector(self.arrays.corner, slot * 4, corners);
        warp.store_vector(self.arrays.neighbour, slot * 4, [outer, next, previous, Lanes::all(0)]);
        warp.when(outer.ne(NONE), |warp| {
            let side = map_active(warp, |lane| cavity(lane).ring[at].outer_side);
            warp.store(self.arrays.neighbour, outer * 4 + side, slot);
        });
        let bad = map_active(warp, |lane| {
            let [a, b] = cavity(lane).ring[at].points;
            is_bad([a, b, cavity(lane).centre])
        });
        let bad = warp.compute(ComputeClass::Fp64, 20, bad);
        warp.store(self.bad, slot, bad.map(u32::from));
        warp.when(bad, |warp| self.append(warp, 1 - round.from, slot));
    }

    /// Returns an error if storage was too small for the triangles.
    fn refuse_overflow(&self, memory: &Memory) -> Result<(), String> {
        let room = self.bad.len();
        match self.count(memory, FULL) {
            0 => Ok(()),
            _ => Err(format!("more triangles than the {room} that there is room for: raise `room`")),
        }
    }

    fn count(&self, memory: &Memory, counter: usize) -> u32 {
        memory.read(self.counts, counter as u64)
    }

    /// Reads the mesh from memory.
    fn mesh(&self, memory: &Memory) -> Triangulation {
        let triple = |array: Array<u32>, at: u64| [0, 1, 2].map(|part| memory.read(array, 4 * at + part));
        let point = |at: u64| [0, 1].map(|axis| memory.read(self.arrays.point, 2 * at + axis) as i64);
        let triangles = u64::from(self.count(memory, TRIANGLES));
        Triangulation {
            points: (0..u64::from(self.count(memory, POINTS))).map(point).collect(),
            corners: (0..triangles).map(|at| triple(self.arrays.corner, at)).collect(),
            neighbours: (0..triangles).map(|at| triple(self.arrays.neighbour, at)).collect(),
        }
    }
}

impl Instance for Refinement {
    fn fill(&self, memory: &Memory) {
        let mesh = Triangulation::random(self.side, self.seed);
        for (at, [x, y]) in (0..).zip(&mesh.points) {
            memory.write(self.arrays.point, 2 * at, *x as f64);
            memory.write(self.arrays.point, 2 * at + 1, *y as f64);
        }
        for (array, triples) in [(self.arrays.corner, &mesh.corners), (self.arrays.neighbour, &mesh.neighbours)] {
            for (at, triple) in (0..).zip(triples) {
                (0..).zip(triple).for_each(|(part, value)| memory.write(array, 4 * at + part, *value));
            }
        }
        memory.fill(self.mark, |_| u64::MAX);
        memory.write(self.counts, TRIANGLES as u64, mesh.corners.len() as u32);
        memory.write(self.counts, POINTS as u64, mesh.points.len() as u32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.arrays.point);
        [self.arrays.corner, self.arrays.neighbour, self.counts]
            .into_iter()
            .for_each(|array| host.copy_to_device(array));
        host.copy_to_device(self.mark);
        let grid = |name| Grid::new(name, u64::from(self.ctas), THREADS);
        let triangles = self.count(host.memory(), TRIANGLES);
        host.launch_ordered(grid("find-bad"), |cta| self.find_bad(cta, triangles))?;
        let mut passes = 0;
        for number in 0..self.rounds {
            host.copy_to_host(self.counts);
            let items = self.count(host.memory(), LISTED);
            if items == 0 {
                break;
            }
            host.memory().write(self.counts, LISTED as u64, 0);
            host.copy_to_device(self.counts);
            let round = Round { from: number as usize % 2, items, passes };
            passes += items.div_ceil(self.ctas * THREADS);
            host.launch_cooperative(grid("refine"), async |cta: &mut Cta<'_>| self.refine(cta, round).await)?;
            self.refuse_overflow(host.memory()).map_err(RecordError::Program)?;
        }
        host.copy_to_host(self.arrays.point);
        host.copy_to_host(self.arrays.corner);
        Ok(())
    }

    /// Checks that the mesh is a Delaunay triangulation of the square with all its initial points and more, that bad
    /// triangles are marked, and that no bad triangle is left if the worklist is empty.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        self.refuse_overflow(memory)?;
        let (mesh, before) = (self.mesh(memory), Triangulation::random(self.side, self.seed));
        mesh.check()?;
        if mesh.points.len() <= before.points.len() || !mesh.points.starts_with(&before.points) {
            return Err(format!("{} points, of {} at the start", mesh.points.len(), before.points.len()));
        }
        let finished = self.count(memory, LISTED) == 0;
        for at in 0..mesh.corners.len() as u32 {
            let corners: [Point; 3] = mesh.triangle(at);
            let known = memory.read(self.bad, u64::from(at));
            let right = if is_bad(corners) { known == HOPELESS || (known == BAD && !finished) } else { known == 0 };
            if !right {
                return Err(format!("triangle {at} {corners:?} is known as {known}, finished is {finished}"));
            }
        }
        Ok(())
    }
}
