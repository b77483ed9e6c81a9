//! Rodinia b+tree: look-ups for ranges and single keys in a tree with a million keys, with one launch each.
//!
//! A CTA handles one query and has one thread per possible child in a node. On each level a thread compares one key in
//! the node with the query; the thread that finds the right child writes its index to memory, from which all threads
//! read the next node. In the leaf the thread with the matching key writes the answer.
//!
//! Nodes are laid out level by level, with room for all keys and children. Keys were inserted in ascending order, so
//! all nodes except the last on a level are half full.

use crate::prelude::*;

/// Answer for a query whose key is absent. Source: Rodinia 3.1 b+tree (`ans`).
const NONE: i32 = -1;

program! {
    /// look-ups in a B+ tree, a CTA each: the upper levels shared by all, leaves by few
    pub(crate) static BTREE = "btree",
        "Rodinia 3.1 b+tree (JuliaParallel/rodinia, cuda/b+tree/b+tree.c and kernel/); CPElide, Table II";
    parameters {
        /// keys, from 0 on, inserted in ascending order, at scale 1; scales
        keys: count(2..=1 << 24) = 1_000_000,
            "CPElide, Table II: mil.txt, whose size is that of the numbers from 0 to 999,999";
        /// single keys that are looked up, a CTA each, at scale 1; scales
        queries: count(1..=1 << 24) = 10_000, "Rodinia 3.1 b+tree, data/b+tree/command.txt: k 10000";
        /// ranges of keys that are looked up, a CTA each, at scale 1; scales
        ranges: count(1..=1 << 24) = 6000, "Rodinia 3.1 b+tree, data/b+tree/command.txt: j 6000 3000";
        /// keys from the first of a range to its last, at scale 1; scales
        span: count(0..=1 << 24) = 3000, "Rodinia 3.1 b+tree, data/b+tree/command.txt: j 6000 3000";
        /// children of a node, at most, and threads of a CTA
        order: count(4..=1024) = 256, "hal-uw/gem5-bmks-micro24, rodinia/b+tree/common.h (`DEFAULT_ORDER`)";
    }
    lay_out(name, request, memory) {
        let [keys, queries, ranges] = [keys, queries, ranges].map(|count| request.scale.of(count));
        let span = if span == 0 { 0 } else { request.scale.of(span) };
        require(name, span < keys, || format!("a range of {span} keys beyond its first does not fit in {keys} keys"))?;
        check_indices(name, keys, "keys")?;
        let layout = NodeLayout { order: order as i32 };
        let (tree, height) = tree(keys as usize, layout.order as usize);
        let words = tree.len() as u64 * layout.words() as u64;
        check_indices(name, words, "words of nodes")?;
    }
    struct Lookups {
        /// Node words, `[node][word]`, with the offsets from [`NodeLayout`].
        nodes: Array<i32>[words],
        records: Array<i32>[keys],
        answers: Array<i32>[queries],
        first_records: Array<i32>["first-records"; ranges],
        lengths: Array<i32>[ranges],
        single: Descent = Descent::new(["key", "current", "next"], queries, memory),
        /// Descents to the first and the last key in a range.
        range: [Descent; 2] = [
            Descent::new(["start", "current-first", "next-first"], ranges, memory),
            Descent::new(["end", "current-last", "next-last"], ranges, memory),
        ],
        tree: Vec<HostNode>,
        /// Levels above the leaves.
        height: u32,
        layout: NodeLayout,
        span: u64,
        seed: u64 = request.seed,
    }
}

/// Arrays for a descent to one key per query; each has an element per query.
#[derive(Clone, Copy)]
struct Descent {
    /// Key searched for.
    key: Array<i32>,
    /// Current node.
    current: Array<i64>,
    /// Next node.
    next: Array<i64>,
}

impl Descent {
    fn new([key, current, next]: [&str; 3], queries: u64, memory: &mut Memory) -> Descent {
        Descent {
            key: memory.array(key, queries, Scaling::Scales),
            current: memory.array(current, queries, Scaling::Scales),
            next: memory.array(next, queries, Scaling::Scales),
        }
    }
}

/// Word offsets in a node: its number, children or records, keys, a leaf flag, and the key count, each 4 bytes. Source:
/// Rodinia 3.1 b+tree (`knode`).
#[derive(Clone, Copy)]
struct NodeLayout {
    order: i32,
}

impl NodeLayout {
    const CHILDREN: i32 = 1;

    fn keys(self) -> i32 {
        self.order + 2
    }

    fn leaf(self) -> i32 {
        2 * self.order + 3
    }

    fn count(self) -> i32 {
        2 * self.order + 4
    }

    fn words(self) -> i32 {
        2 * self.order + 5
    }
}

/// A node on the host: the numbers of its children or records, and the keys between them.
struct HostNode {
    leaf: bool,
    /// Numbers of the node's children or records.
    items: Vec<i32>,
    /// In a leaf the key for each item; in an inner node the least key below each item except the first.
    keys: Vec<i32>,
}

/// Group sizes after ascending insertion of `count` items: a node holds at most `most` items, and keeps `kept` items
/// when it splits.
fn groups(count: usize, most: usize, kept: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut left = count;
    while left > most {
        sizes.push(kept);
        left -= kept;
    }
    sizes.push(left);
    sizes
}

/// Nodes in the tree with keys 0 to `keys - 1`, level by level from the root, and the number of levels above the
/// leaves.
fn tree(keys: usize, order: usize) -> (Vec<HostNode>, u32) {
    let leaves = groups(keys, order - 1, (order - 1).div_ceil(2));
    // By level from below: each node's item count, and the least key below each node.
    let mut levels = vec![leaves];
    while levels[levels.len() - 1].len() > 1 {
        let below = levels[levels.len() - 1].len();
        levels.push(groups(below, order, order.div_ceil(2)));
    }
    let height = levels.len() as u32 - 1;
    let mut least: Vec<i32> = (0..keys as i32).collect();
    let mut built = Vec::new();
    for (level, sizes) in levels.iter().enumerate() {
        let (mut first, mut nodes, mut least_of_nodes) = (0, Vec::new(), Vec::new());
        for size in sizes {
            let items: Vec<i32> = (first as i32..(first + size) as i32).collect();
            let keys = least[first + usize::from(level > 0)..first + size].to_vec();
            nodes.push(HostNode { leaf: level == 0, items, keys });
            least_of_nodes.push(least[first]);
            first += size;
        }
        least = least_of_nodes;
        built.push(nodes);
    }
    built.reverse();
    // Items in inner nodes are still numbered within their level.
    let mut start = 0;
    for nodes in &mut built[..height as usize] {
        start += nodes.len() as i32;
        nodes.iter_mut().flat_map(|node| &mut node.items).for_each(|item| *item += start);
    }
    (built.into_iter().flatten().collect(), height)
}

impl Lookups {
    /// Index for a word in each lane's node.
    fn word(&self, warp: &mut Warp<'_>, node: Lanes<i64>, word: Lanes<i32>) -> Lanes<i32> {
        warp.compute(ComputeClass::Int, 1 + ADDRESS, node.cast::<i32>() * self.layout.words() + word)
    }

    /// Writes the next child, in the thread whose keys enclose the query.
    fn compare(&self, warp: &mut Warp<'_>, descent: Descent) {
        let (thread, query) = (warp.thread(), Lanes::all(warp.cta()));
        let (node, key) = (warp.load(descent.current, query), warp.load(descent.key, query));
        let at = self.word(warp, node, thread + self.layout.keys());
        let low = warp.load(self.nodes, at);
        warp.when(low.le(key), |warp| {
            let high = warp.load(self.nodes, at + 1);
            warp.when(high.gt(key), |warp| {
                let node = warp.load(descent.next, query);
                let at = self.word(warp, node, thread + NodeLayout::CHILDREN);
                let child = warp.load(self.nodes, at);
                // Rodinia has this condition so that a damaged tree cannot lead outside.
                warp.when(child.lt(self.tree.len() as i32), |warp| {
                    let child = warp.compute(ComputeClass::Int, 1, child.cast::<i64>());
                    warp.store(descent.next, query, child);
                });
            });
        });
    }

    /// Descends from the root to the leaves, in parallel for each of `descents`.
    fn descend(&self, cta: &mut Cta<'_>, descents: &[Descent]) {
        for _ in 0..self.height {
            cta.each_warp(|warp| descents.iter().for_each(|descent| self.compare(warp, *descent)));
            cta.barrier();
            cta.each_warp(|warp| {
                let thread = warp.thread();
                warp.when(thread.eq(0), |warp| {
                    let query = Lanes::all(warp.cta());
                    for descent in descents {
                        let next = warp.load(descent.next, query);
                        warp.store(descent.current, query, next);
                    }
                });
            });
            cta.barrier();
        }
    }

    /// Passes the record for the matching key to `body`, in the lane whose thread found the key.
    fn with_match(
        &self,
        cta: &mut Cta<'_>,
        descent: Descent,
        mut body: impl FnMut(&mut Warp<'_>, Lanes<u32>, Lanes<i32>),
    ) {
        cta.each_warp(|warp| {
            let (thread, query) = (warp.thread(), Lanes::all(warp.cta()));
            let (node, wanted) = (warp.load(descent.current, query), warp.load(descent.key, query));
            let at = self.word(warp, node, thread + self.layout.keys());
            let key = warp.load(self.nodes, at);
            warp.when(key.eq(wanted), |warp| {
                let at = self.word(warp, node, thread + NodeLayout::CHILDREN);
                let record = warp.load(self.nodes, at);
                body(warp, query, record);
            });
        });
    }

    fn find_key(&self, cta: &mut Cta<'_>) {
        self.descend(cta, &[self.single]);
        self.with_match(cta, self.single, |warp, query, record| {
            let value = warp.load(self.records, record);
            warp.store(self.answers, query, value);
        });
    }

    fn find_range(&self, cta: &mut Cta<'_>) {
        self.descend(cta, &self.range);
        let [first, last] = self.range;
        self.with_match(cta, first, |warp, query, record| warp.store(self.first_records, query, record));
        cta.barrier();
        self.with_match(cta, last, |warp, query, record| {
            let length = record - warp.load(self.first_records, query) + 1;
            let length = warp.compute(ComputeClass::Int, 2, length);
            warp.store(self.lengths, query, length);
        });
    }

    /// Value stored in a key's record. Rodinia stores the key itself, but a check could not distinguish the two.
    fn value(&self, key: u64) -> i32 {
        noise::below(self.seed, key, 1 << 30) as i32
    }

    fn query_key(&self, query: u64) -> u64 {
        noise::below(!self.seed, query, self.records.len())
    }

    /// First key in a range that lies entirely in the tree.
    fn start(&self, query: u64) -> u64 {
        noise::below(self.seed ^ 1, query, self.records.len() - self.span)
    }

    fn copy_to_device(host: &mut Host<'_>, Descent { key, current, next }: Descent) {
        host.copy_to_device(current);
        host.copy_to_device(next);
        host.copy_to_device(key);
    }
}

impl Instance for Lookups {
    fn fill(&self, memory: &Memory) {
        let (layout, words) = (self.layout, self.layout.words() as u64);
        for (number, node) in (0..).zip(&self.tree) {
            let write = |word: i32, value: i32| memory.write(self.nodes, number * words + word as u64, value);
            write(0, number as i32);
            write(layout.leaf(), i32::from(node.leaf));
            write(layout.count(), node.keys.len() as i32 + 2);
            // A least key comes before the node's keys, and greatest keys follow them.
            write(layout.keys(), i32::MIN);
            (1..=layout.order).for_each(|word| write(layout.keys() + word, i32::MAX));
            (1..).zip(&node.keys).for_each(|(word, key)| write(layout.keys() + word, *key));
            (i32::from(node.leaf)..)
                .zip(&node.items)
                .for_each(|(word, item)| write(NodeLayout::CHILDREN + word, *item));
        }
        memory.fill(self.records, |key| self.value(key));
        memory.fill(self.answers, |_| NONE);
        memory.fill(self.single.key, |query| self.query_key(query) as i32);
        memory.fill(self.range[0].key, |query| self.start(query) as i32);
        memory.fill(self.range[1].key, |query| (self.start(query) + self.span) as i32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let grid = |name, queries| Grid::new(name, queries, self.layout.order as u32);
        host.copy_to_device(self.nodes);
        self.range.iter().for_each(|descent| Lookups::copy_to_device(host, *descent));
        host.copy_to_device(self.first_records);
        host.copy_to_device(self.lengths);
        host.launch(grid("find-range", self.lengths.len()), |cta| self.find_range(cta))?;
        host.copy_to_host(self.first_records);
        host.copy_to_host(self.lengths);
        // The second query type needs none of the first's results.
        host.restore(|_| ());
        host.copy_to_device(self.records);
        host.copy_to_device(self.nodes);
        Lookups::copy_to_device(host, self.single);
        host.copy_to_device(self.answers);
        host.launch(grid("find-key", self.answers.len()), |cta| self.find_key(cta))?;
        host.copy_to_host(self.answers);
        Ok(())
    }

    /// Checks the results; a key equals its record's number.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let check = |what: &str, found: Array<i32>, expected: &dyn Fn(u64) -> i32| {
            let wrong = (0..found.len()).find(|query| memory.read(found, *query) != expected(*query));
            let tell = |query| format!("{what} {query} is {}, expected {}", memory.read(found, query), expected(query));
            wrong.map_or(Ok(()), |query| Err(tell(query)))
        };
        check("answer", self.answers, &|query| self.value(self.query_key(query)))?;
        check("first record", self.first_records, &|query| self.start(query) as i32)?;
        check("length", self.lengths, &|_| self.span as i32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_ascending_keys_leave_half_full_nodes() {
        let (nodes, height) = tree(1_000_000, 256);
        let leaves = nodes.iter().filter(|node| node.leaf).count();
        assert_eq!((nodes.len(), leaves, height), (1 + 61 + 7812, 7812, 2));
        assert!(nodes[62..nodes.len() - 1].iter().all(|node| node.keys.len() == 128));
        // Rodinia's comments give 3953 as the last node in its tree with order 508.
        assert_eq!(tree(1_000_000, 508).0.len(), 3953);
    }

    #[test]
    fn a_node_leads_to_each_node_below_once() {
        let (nodes, height) = tree(1000, 5);
        assert!(height > 3);
        let mut below: Vec<i32> = nodes.iter().filter(|node| !node.leaf).flat_map(|node| node.items.clone()).collect();
        below.sort_unstable();
        assert_eq!(below, (1..nodes.len() as i32).collect::<Vec<_>>());
        let records: Vec<i32> = nodes.iter().filter(|node| node.leaf).flat_map(|node| node.items.clone()).collect();
        assert_eq!(records, (0..1000).collect::<Vec<_>>());
    }
}
