//! Queues stored in a shared slab: waiters for each miss, without an allocation per queue.

use tombolo_engine::prefetch;

/// End marker in [`SlabNode::next`] and [`List`].
pub(super) const NIL: u32 = u32::MAX;

/// Queue of nodes in a slab, linked by index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NIL, tail: NIL };
}

#[derive(Clone, Copy, Debug)]
struct SlabNode<T> {
    next: u32,
    value: T,
}

/// Node storage for many queues. The slab grows to the maximum number of values queued simultaneously; afterwards no
/// further allocation occurs.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    nodes: Vec<SlabNode<T>>,
    free: u32,
}

impl<T: Copy> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { nodes: Vec::new(), free: NIL }
    }

    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, value: T) {
        let node = SlabNode { next: NIL, value };
        let at = match self.free {
            NIL => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
            free => {
                self.free = self.nodes[free as usize].next;
                self.nodes[free as usize] = node;
                if let Some(next) = self.nodes.get(self.free as usize) {
                    prefetch(next);
                }
                free
            }
        };
        match list.tail {
            NIL => list.head = at,
            tail => self.nodes[tail as usize].next = at,
        }
        list.tail = at;
    }

    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.head == NIL {
            return None;
        }
        let at = list.head;
        let SlabNode { next, value } = self.nodes[at as usize];
        list.head = next;
        if next == NIL {
            list.tail = NIL;
        }
        self.nodes[at as usize].next = self.free;
        self.free = at;
        Some(value)
    }

    /// Prefetches a queue's first node into the host's caches.
    #[inline]
    pub(super) fn prefetch(&self, list: List) {
        if let Some(node) = self.nodes.get(list.head as usize) {
            prefetch(node);
        }
    }

    pub(crate) fn values(&self, list: List) -> impl Iterator<Item = &T> {
        let mut at = list.head;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.next;
            Some(&node.value)
        })
    }
}
