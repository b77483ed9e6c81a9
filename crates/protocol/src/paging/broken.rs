//! Deliberately broken rules of pages that change.

/// A broken rule of pages that change. The explorer must catch each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenPaging {
    /// Who unmaps a page goes on to use it where it was.
    TranslationKept,
    /// Who unmaps a page does not wait for its loads: a late one leaves a line at the old home.
    LoadsNotAwaited,
    /// Who unmaps a page does not wait for its stores: they reach the old home behind the copy.
    StoresNotAwaited,
    /// Who unmaps a published page leaves in its queue what that has of it.
    QueueKept,
    /// Who unmaps a published page does not wait for what it has published: it reaches copies that have been given up since.
    PublicationsNotAwaited,
    /// A page is copied without its dirty bytes.
    NotWrittenBack,
    /// The old home's L2 keeps the page's lines: they are old when the page comes back.
    LinesKept,
    /// A page is copied before it is unmapped.
    CopiedEarly,
    /// A page is mapped before it is copied.
    MappedEarly,
    /// A page with copies is given away while readers use theirs: they hear of it with the others, as it is mapped.
    ReadersKept,
    /// Who gives up a copy keeps its lines in its L2: they are old when the page comes there.
    CopyLinesKept,
    /// A page is copied for a reader while others may write to it.
    WritersKept,
    /// A page's new home learns of it when it is mapped: who has been told before it asks a module that sends the request
    /// on to the old home.
    ArrivalUnknown,
    /// A store or an atomic at `.sys` scope to a published page is published as another, and the page stays as it is.
    SystemStorePublished,
    /// A published page collapses to the writer, whether or not that has a copy of it.
    CollapsedToWriter,
    /// Who has no copy of a published page does not unmap it as its subscribers change: it goes on to publish to the old ones.
    PublishersKept,
    /// The home of a published page learns who subscribes to it with the others: for who has heard before it, it publishes to
    /// those that subscribed before.
    HomeToldWithOthers,
    /// A page changes again before all have heard of the last change: the news of that arrives last.
    MapNotAwaited,
    /// A fault is served by where the page was when it was made, though the page has changed since.
    ServedAsFaulted,
}

impl BrokenPaging {
    /// Every one.
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

    /// Whether it makes a difference to published pages alone.
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
