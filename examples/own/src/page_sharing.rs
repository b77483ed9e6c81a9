//! An observer: the number of GPUs that use each page, and the bytes that each module receives over the links.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tombolo::observer::{LineAccess, Observer, PacketArrival, Ps, WarpPlace};

/// Bytes per counted page. Source: assumed; the count does not depend on the page size of the machine.
const PAGE_BYTES: u64 = 65536;

/// GPUs that load from, or store to, each page; bytes that arrive at each module.
#[derive(Default)]
pub(crate) struct PageSharing {
    users: BTreeMap<u64, BTreeSet<u8>>,
    received: BTreeMap<u8, u64>,
}

impl PageSharing {
    fn use_page(&mut self, by: WarpPlace, access: LineAccess) {
        self.users.entry(access.address / PAGE_BYTES).or_default().insert(by.gpu.0);
    }
}

impl Observer for PageSharing {
    fn loaded(&mut self, _: Ps, by: WarpPlace, access: LineAccess) {
        self.use_page(by, access);
    }

    fn stored(&mut self, by: WarpPlace, access: LineAccess) {
        self.use_page(by, access);
    }

    fn packet_arrived(&mut self, _: Ps, packet: PacketArrival) {
        *self.received.entry(packet.target.0).or_default() += u64::from(packet.bytes);
    }
}

/// In the run's document.
#[derive(Serialize)]
struct Report<'a> {
    /// Pages by their number of users.
    pages_by_users: BTreeMap<usize, u64>,
    /// Bytes by module.
    received_bytes: &'a BTreeMap<u8, u64>,
}

impl Serialize for PageSharing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pages_by_users = BTreeMap::new();
        self.users.values().for_each(|users| *pages_by_users.entry(users.len()).or_default() += 1);
        Report { pages_by_users, received_bytes: &self.received }.serialize(serializer)
    }
}
