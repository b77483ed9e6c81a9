//! A bank: its open row, the rows scheduled after it, and the refreshes of the bank.

use super::{AccessTiming, DramConfig, RefreshScope};
use crate::calendar::Calendar;
use tombolo_types::Ps;

/// Number of row intervals remembered per bank.
const OPENINGS: usize = 8;

/// Bank state: past, current and scheduled row intervals. Index [`Bank::newest`] is the last row opened; it stays open
/// until another row is needed.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Bank {
    /// Row numbers; [`Bank::NONE`] marks an unused entry.
    pub(super) rows: [u64; OPENINGS],
    /// First possible column access per interval.
    pub(super) opens: [Ps; OPENINGS],
    /// Precharge time per interval.
    pub(super) closes: [Ps; OPENINGS],
    pub(super) newest: usize,
    /// Activation time of the newest row.
    activated: Ps,
    /// Earliest precharge of the newest row (tRTP after its last read command, tWR after its last written data); with
    /// all rows closed, the earliest activation.
    busy: Ps,
    /// Due time of the next refresh of this bank alone; [`Ps::NEVER`] if all banks are refreshed together.
    due: Ps,
    /// Number of channel refreshes already applied to this bank.
    refreshes: u64,
}

/// Row state found by an access in its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    Hit,
    Closed,
    Conflict,
}

/// Row interval usable for an access: index in the bank, row state found, and earliest possible column access.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowInterval {
    pub(super) at: usize,
    pub(super) state: RowState,
    pub(super) column: Ps,
}

impl Bank {
    const NONE: u64 = u64::MAX;
    /// Row number without any line.
    const USELESS: u64 = u64::MAX - 1;

    /// Creates bank `index` of a channel, with every row closed. The banks' own refreshes are spread over an interval.
    pub(super) fn new(config: &DramConfig, index: u32) -> Bank {
        let due = match config.refresh {
            RefreshScope::Bank if config.t_refi > Ps::ZERO => {
                Ps(config.t_refi.0 / u64::from(config.banks) * u64::from(index + 1))
            }
            RefreshScope::Bank | RefreshScope::Channel => Ps::NEVER,
        };
        Bank {
            rows: [Bank::NONE; OPENINGS],
            opens: [Ps::ZERO; OPENINGS],
            closes: [Ps::ZERO; OPENINGS],
            newest: 0,
            activated: Ps::ZERO,
            busy: Ps::ZERO,
            due,
            refreshes: 0,
        }
    }

    /// Applies the refreshes due before an access at `ready`: the bank's own, or the channel's, `channel.done` since
    /// the start.
    #[inline]
    pub(super) fn refresh(&mut self, channel: &ChannelRefresh, ready: Ps, config: &DramConfig) {
        if self.refreshes != channel.done {
            self.refreshes = channel.done;
            self.close(channel.until);
        }
        if ready >= self.due {
            self.refresh_alone(ready, config);
        }
    }

    /// Performs the bank's due refreshes in its idle time before an access at `ready`. The next access waits for
    /// refreshes that cannot be postponed any more.
    #[inline]
    fn refresh_alone(&mut self, ready: Ps, config: &DramConfig) {
        let free = self.busy.max(self.activated + config.t_ras) + config.t_rp;
        if ready < free.max(self.due) + config.t_rfc && ready < self.due + config.t_refi {
            return;
        }
        let owed = (ready - self.due).0 / config.t_refi.0 + 1;
        // The first of these refreshes starts when due.
        let idle = ready.saturating_sub(free.max(self.due));
        let fit = owed.min(idle.0 / config.t_rfc.0.max(1));
        let forced = (owed - fit).saturating_sub(POSTPONED);
        if fit + forced > 0 {
            self.due += Ps((fit + forced) * config.t_refi.0);
            self.close(free.max(ready) + Ps(forced * config.t_rfc.0));
        }
    }

    /// Closes all rows; the next row opens at `until` or later.
    fn close(&mut self, until: Ps) {
        self.rows = [Bank::NONE; OPENINGS];
        self.busy = until;
    }

    /// Prevents requests from joining any row opened so far.
    pub(super) fn forget_rows(&mut self) {
        for row in self.rows.iter_mut().filter(|row| **row != Bank::NONE) {
            *row = Bank::USELESS;
        }
    }

    /// Returns the open interval for `row` that a request at `ready` can join.
    #[inline]
    pub(super) fn joinable(&self, row: u64, ready: Ps) -> Option<RowInterval> {
        let open = |at: &usize| self.rows[*at] == row && ready < self.closes[*at];
        let at = std::iter::once(self.newest).chain(0..OPENINGS).find(open)?;
        Some(RowInterval { at, state: RowState::Hit, column: self.opens[at].max(ready) })
    }

    /// Opens `row` after everything scheduled in the bank, for an access in the event at `timing.issued`.
    #[inline]
    pub(super) fn open(
        &mut self,
        row: u64,
        timing: AccessTiming,
        config: &DramConfig,
        (activations, group): (&mut Calendar, u32),
    ) -> RowInterval {
        let closed = self.rows[self.newest] == Bank::NONE;
        let earliest = if closed {
            timing.ready.max(self.busy)
        } else {
            timing.ready.max(self.busy).max(self.activated + config.t_ras) + config.t_rp
        };
        let activate = activations.reserve_in(group, timing.issued, earliest, 1) - activations.span(1);
        if !closed {
            self.closes[self.newest] = activate - config.t_rp;
        }
        self.newest = (self.newest + 1) % OPENINGS;
        let (at, column) = (self.newest, activate + config.t_rcd);
        (self.rows[at], self.opens[at], self.closes[at]) = (row, column, Ps::NEVER);
        (self.activated, self.busy) = (activate, column);
        RowInterval { at, state: if closed { RowState::Closed } else { RowState::Conflict }, column }
    }

    /// End of all work scheduled so far.
    pub(super) fn busy(&self) -> Ps {
        self.busy
    }

    /// Keeps a row open until `until`, if it is the newest.
    #[inline]
    pub(super) fn hold(&mut self, at: usize, until: Ps) {
        if at == self.newest {
            self.busy = self.busy.max(until);
        }
    }
}

/// Maximum number of postponed refreshes of a bank. Source: JESD235, single-bank refresh: each bank is refreshed once before
/// any bank is refreshed again.
const POSTPONED: u64 = 1;

/// Advances `due` past `ready`, interval by interval; returns the last due time up to `ready`.
fn latest_due(due: &mut Ps, ready: Ps, config: &DramConfig) -> Ps {
    let last = *due + Ps((ready - *due).0 / config.t_refi.0 * config.t_refi.0);
    *due = last + config.t_refi;
    last
}

/// Refreshes of all banks in a channel together.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelRefresh {
    /// Due time of the next refresh; [`Ps::NEVER`] without refreshes of all banks.
    due: Ps,
    /// Number of refreshes done.
    done: u64,
    /// End of the latest refresh.
    until: Ps,
}

impl ChannelRefresh {
    /// Creates the state for channel `index` of `config.channels`: their first refreshes are spread over an interval.
    pub(super) fn new(config: &DramConfig, index: u32) -> ChannelRefresh {
        let due = match config.refresh {
            RefreshScope::Channel if config.t_refi > Ps::ZERO => {
                Ps(config.t_refi.0 / u64::from(config.channels) * u64::from(index + 1))
            }
            RefreshScope::Bank | RefreshScope::Channel => Ps::NEVER,
        };
        ChannelRefresh { due, done: 0, until: Ps::ZERO }
    }

    /// Performs the refresh due before an access at `ready`, after all work scheduled until `busy`. Refreshes of an
    /// interval without any access count once: they change nothing further.
    #[inline]
    pub(super) fn advance(&mut self, ready: Ps, busy: Ps, config: &DramConfig) {
        if ready >= self.due {
            let last = latest_due(&mut self.due, ready, config);
            self.done += 1;
            self.until = last.max(busy) + config.t_rp + config.t_rfc;
        }
    }
}
