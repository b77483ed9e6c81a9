//! Host transfers in flight to the modules: the bytes that the host reads or writes between kernels, and the written
//! contents.
//!
//! The list is shared by a run's partitions, like [`crate::fabric::sideband`]. The command processor adds a transfer before it
//! sends the number, and clears the list when a kernel ends, because each transfer arrives before this kernel's launch.
//! [`tombolo_protocol::transfer`] defines the effect of a transfer on a line. Neither DRAM nor links carry the bytes;
//! [`crate::front_end::command_processor`] times each transfer as a whole.

use crate::l2::backend::{L2Design, L2Slice};
use crate::message::Out;
use crate::module::config::ModuleConfig;
use crate::module::context::SliceContext;
use crate::module::halves::{SliceGroup, SliceSide};
use crate::module::uncore::Uncore;
use crate::observe::value_probe::{Contents, ValueProbe};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use tombolo_types::{HostPhase, Line, Mask};

/// A host transfer.
#[derive(Debug)]
pub(crate) struct Transfer<D> {
    /// Addresses read or written: ranges in ascending order, without overlaps.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Written lines with their new contents. Empty if data is not modelled.
    pub(crate) contents: Vec<(Line, Mask, D)>,
}

/// Transfers in flight, by number.
#[derive(Debug)]
pub struct Transfers<D>(Arc<RwLock<FxHashMap<u32, Arc<Transfer<D>>>>>);

impl<D> Default for Transfers<D> {
    fn default() -> Self {
        Transfers(Arc::default())
    }
}

impl<D> Clone for Transfers<D> {
    fn clone(&self) -> Self {
        Transfers(Arc::clone(&self.0))
    }
}

impl<D> Transfers<D> {
    /// Adds a transfer under a number.
    pub(crate) fn add(&self, number: u32, transfer: Transfer<D>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(transfer));
    }

    /// Returns the transfer with a number.
    fn get(&self, number: u32) -> Arc<Transfer<D>> {
        let transfers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(transfers.get(&number).expect("a transfer is kept until it has arrived"))
    }

    /// Removes all transfers.
    pub(crate) fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl<C: L2Design<D>, D: Contents> SliceSide<C, D> {
    /// A host transfer arrives at the group with first slice `slice`.
    #[cold]
    pub(crate) fn transfer(
        &mut self,
        slice: u16,
        (number, is_read): (u32, bool),
        (config, uncore): (&ModuleConfig<C, D>, &mut Uncore<D>),
        out: &mut Out<'_, D>,
    ) {
        let (group, _) = self.place(slice);
        let transfer = config.transfers.get(number);
        let mut here = TransferGroup { first: slice, group: &mut self.groups[group], config, uncore, out };
        if is_read { here.read(number, transfer.ranges.clone()) } else { here.write(&transfer) }
    }
}

/// A slice group receiving a transfer.
struct TransferGroup<'a, 'o, C: L2Design<D>, D: Contents> {
    /// Number of its first slice.
    first: u16,
    group: &'a mut SliceGroup<C, D>,
    config: &'a ModuleConfig<C, D>,
    uncore: &'a mut Uncore<D>,
    out: &'a mut Out<'o, D>,
}

impl<C: L2Design<D>, D: Contents> TransferGroup<'_, '_, C, D> {
    /// Index of the slice with a line in this group; `None` if another group has the line.
    fn slice_of(&self, line: Line) -> Option<usize> {
        let index = usize::from(self.config.map.slice(line).checked_sub(self.first)?);
        (index < self.group.slices.len()).then_some(index)
    }

    /// The host writes: cached copies are dropped, and each line gets new contents in the home memory.
    fn write(&mut self, transfer: &Transfer<D>) {
        let TransferGroup { group: SliceGroup { slices, shared }, config, uncore, out, .. } = self;
        for slice in &mut *slices {
            let mut here = SliceContext { id: slice.id(), config, shared, uncore, out };
            slice.host_wrote(&transfer.ranges, &mut here);
        }
        for &(line, mask, data) in &transfer.contents {
            if self.slice_of(line).is_some() && self.config.map.is_placed(line) && self.config.is_home(line) {
                self.group.shared.memory.write(line, mask, data);
                if self.config.map.moves() {
                    self.config.sideband.write(self.config.map.page(line), (line, mask, data));
                }
            }
        }
    }

    /// The host reads, if the value probe observes the read: covers the lines that all modules find in this module's
    /// memory.
    fn read(&mut self, number: u32, reads: Vec<Range<u64>>) {
        let phase = HostPhase { reads, writes: Vec::new() };
        for access in phase.accesses(self.config.machine.line) {
            let line = access.line;
            let Some(index) = self.slice_of(line) else { continue };
            if self.config.map.only_home(line) == Some(self.config.module) {
                let SliceGroup { slices, shared } = &mut *self.group;
                let data = slices[index].host_reads(line, &shared.memory, self.config);
                self.config.probe.host_read(self.out.now(), number, line, access.mask, data);
            }
        }
    }
}
