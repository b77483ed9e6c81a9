//! Deliberately broken rules for page changes, used to test the explorer.

/// A broken rule for page changes. The explorer must catch each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenPaging {
    /// A module that unmaps a page continues to use the page at its old location.
    TranslationKept,
    /// A module that unmaps a page does not wait for its loads: a late load leaves a line at the old home.
    LoadsNotAwaited,
    /// A module that unmaps a page does not wait for its stores: they reach the old home after the copy.
    StoresNotAwaited,
    /// A module that unmaps a published page leaves the page's entries in its queue.
    QueueKept,
    /// A module that unmaps a published page does not wait for its publications: late publications reach copies
    /// already given up.
    PublicationsNotAwaited,
    /// A page is copied without its dirty bytes, which remain in the old L2.
    NotWrittenBack,
    /// The old home's L2 keeps the page's lines: they are outdated when the page comes back.
    LinesKept,
    /// A page is copied before all modules have unmapped it.
    CopiedEarly,
    /// A page is mapped before its copy is complete.
    MappedEarly,
    /// A page with copies moves while readers still use their copies: readers learn about the move only at the map
    /// step.
    ReadersKept,
    /// A module that gives up a copy keeps the page's lines in its L2: they are outdated when the page returns.
    CopyLinesKept,
    /// A page is copied for a reader while other modules may still write to it.
    WritersKept,
    /// A page's new home learns about it only at its map step: a module notified earlier sends its request to a
    /// home that forwards it to the old home.
    ArrivalUnknown,
    /// A store or an atomic at `.sys` scope to a published page is published like any other, and the page does not
    /// collapse.
    SystemStorePublished,
    /// A published page collapses to the writer, even if the writer has no copy.
    CollapsedToWriter,
    /// A module without a copy of a published page does not unmap it when its subscribers change: it continues to
    /// publish to the old subscribers.
    PublishersKept,
    /// A published page's home learns its new subscribers together with all other modules. For a module notified
    /// earlier, it publishes to the previous subscribers.
    HomeToldWithOthers,
    /// A page changes again before all modules have acknowledged the last change: the older news arrives last.
    MapNotAwaited,
    /// A fault is served from the page's location when the fault was raised, although the page has changed since.
    ServedAsFaulted,
}

impl BrokenPaging {
    /// All variants.
    pub const ALL: [BrokenPaging; 19] = [
        BrokenPaging::TranslationKept,
        BrokenPaging::LoadsNotAwaited,
        BrokenPaging::StoresNotAwaited,
        BrokenPaging::QueueKept,
        BrokenPaging::PublicationsNotAwaited,
        BrokenPaging::NotWrittenBack,
        BrokenPaging::LinesKept,
        BrokenPaging::CopiedEarly,
        BrokenPaging::MappedEarly,
        BrokenPaging::ReadersKept,
        BrokenPaging::CopyLinesKept,
        BrokenPaging::WritersKept,
        BrokenPaging::ArrivalUnknown,
        BrokenPaging::SystemStorePublished,
        BrokenPaging::CollapsedToWriter,
        BrokenPaging::PublishersKept,
        BrokenPaging::HomeToldWithOthers,
        BrokenPaging::MapNotAwaited,
        BrokenPaging::ServedAsFaulted,
    ];

    /// True if the rule affects only published pages.
    pub fn is_of_published(self) -> bool {
        match self {
            BrokenPaging::QueueKept
            | BrokenPaging::PublicationsNotAwaited
            | BrokenPaging::SystemStorePublished
            | BrokenPaging::CollapsedToWriter
            | BrokenPaging::PublishersKept
            | BrokenPaging::HomeToldWithOthers => true,
            BrokenPaging::TranslationKept
            | BrokenPaging::LoadsNotAwaited
            | BrokenPaging::StoresNotAwaited
            | BrokenPaging::NotWrittenBack
            | BrokenPaging::LinesKept
            | BrokenPaging::CopiedEarly
            | BrokenPaging::MappedEarly
            | BrokenPaging::ReadersKept
            | BrokenPaging::CopyLinesKept
            | BrokenPaging::WritersKept
            | BrokenPaging::ArrivalUnknown
            | BrokenPaging::MapNotAwaited
            | BrokenPaging::ServedAsFaulted => false,
        }
    }
}
