//! Readers and writers per array: the basis for advice on memory sharing.

use super::copies::array_lines;
use super::{Movement, bytes, pages_of};
use tombolo_model::front_end::WrittenBytes;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::ModuleId;
use tombolo_types::stream::Program;

/// Sharing pattern for a page over the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageKind {
    /// A single module touches the page.
    Private,
    /// Several modules read the page and no module writes it.
    ReadOnly,
    /// A single module writes the page, and further modules read from the page.
    OneWriter,
    /// Several modules write the page.
    ManyWriters,
}

/// Number of pages by sharing pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageKinds {
    /// [`PageKind::Private`].
    pub private: u64,
    /// [`PageKind::ReadOnly`].
    pub read_only: u64,
    /// [`PageKind::OneWriter`].
    pub one_writer: u64,
    /// [`PageKind::ManyWriters`].
    pub many_writers: u64,
}

impl PageKinds {
    /// The most frequent kind; in a tie, the kind with more sharing; `None` if no page is touched.
    pub fn most(&self) -> Option<PageKind> {
        let kinds = [
            (self.private, PageKind::Private),
            (self.read_only, PageKind::ReadOnly),
            (self.one_writer, PageKind::OneWriter),
            (self.many_writers, PageKind::ManyWriters),
        ];
        kinds.into_iter().filter(|(pages, _)| *pages > 0).max().map(|(_, kind)| kind)
    }

    fn add(&mut self, kind: PageKind) {
        *match kind {
            PageKind::Private => &mut self.private,
            PageKind::ReadOnly => &mut self.read_only,
            PageKind::OneWriter => &mut self.one_writer,
            PageKind::ManyWriters => &mut self.many_writers,
        } += 1;
    }
}

/// Data flow from a writer to a reader, possibly the same module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The writing module.
    pub writer: ModuleId,
    /// The reading module.
    pub reader: ModuleId,
    /// Pages with any such data.
    pub pages: u64,
    /// Bytes in the flow, in whole lines.
    pub bytes: u64,
}

/// Sharing pattern for an array over the whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySharing {
    /// Index of the array; `None` for lines outside every array.
    pub array: Option<u32>,
    /// Lines in the array; outside every array, a run of touched pages from the first to the last line.
    pub lines: LineRange,
    /// Lines read, indexed by module.
    pub read: Vec<LineSet>,
    /// Lines written, indexed by module.
    pub written: Vec<LineSet>,
    /// Pages by sharing pattern. A page shared by two arrays counts for both.
    pub pages: PageKinds,
    /// Non-empty flows, sorted by writer, then by reader.
    pub flows: Vec<Flow>,
    /// Lines that any module writes.
    pub written_lines: u64,
    /// Lines in which several modules write the same bytes, for example a counter or a frontier.
    pub contended_lines: u64,
}

impl Movement {
    /// Sharing pattern for each touched array in `program`, in address order; lines outside every array come last, with
    /// a row for each run of pages.
    pub fn sharing(&self, program: &dyn Program) -> Vec<ArraySharing> {
        let (read, bytes_written) = self.unions();
        let written: Vec<LineSet> = bytes_written.iter().map(|bytes| bytes.lines.clone()).collect();
        let contended = contended(&bytes_written);
        let arrays = array_lines(program);
        let touched: LineSet = read.iter().chain(&written).flat_map(LineSet::ranges).copied().collect();
        let elsewhere = touched.without(&arrays.iter().flatten().copied().collect());
        let runs = elsewhere
            .ranges()
            .chunk_by(|one, next| next.first.0 / self.lines_per_page - (one.end.0 - 1) / self.lines_per_page <= 1);
        let runs = runs.map(|run| (None, run[0].hull(run[run.len() - 1])));
        let named = (0..).zip(&arrays).filter_map(|(array, lines)| lines.map(|lines| (Some(array), lines)));
        let named = named.filter(|(_, lines)| touched.overlaps(&(*lines).into()));
        let bytes = program.line_size().bytes();
        let row = |(array, lines): (Option<u32>, LineRange)| {
            let within = |sets: &[LineSet]| sets.iter().map(|set| set.intersection(&lines.into())).collect();
            let contended = contended.intersection(&lines.into()).count();
            self.row((array, lines), within(&read), within(&written), (bytes, contended))
        };
        named.chain(runs).map(row).collect()
    }

    fn row(
        &self,
        (array, lines): (Option<u32>, LineRange),
        read: Vec<LineSet>,
        written: Vec<LineSet>,
        (line_bytes, contended_lines): (u64, u64),
    ) -> ArraySharing {
        let flow = |(writer, reader): (usize, usize)| {
            let common = written[writer].intersection(&read[reader]);
            let [writer, reader] = [writer, reader].map(|module| ModuleId(module as u8));
            let pages = count(&common, self.lines_per_page);
            (!common.is_empty()).then(|| Flow { writer, reader, pages, bytes: common.count() * line_bytes })
        };
        let flows = (0..written.len()).flat_map(|writer| (0..read.len()).map(move |reader| (writer, reader)));
        let flows = flows.filter_map(flow).collect();
        let any: LineSet = written.iter().flat_map(LineSet::ranges).copied().collect();
        let pages = page_kinds(&read, &written, self.lines_per_page);
        ArraySharing { array, lines, pages, flows, written_lines: any.count(), contended_lines, read, written }
    }

    /// Lines read and bytes written in the whole program, indexed by module.
    pub(super) fn unions(&self) -> (Vec<LineSet>, Vec<WrittenBytes>) {
        let modules = self.kernels.iter().map(Vec::len).max().unwrap_or_default();
        let of_module = |module: usize| {
            let kernels = || self.kernels.iter().filter_map(move |kernel| kernel.get(module));
            let read = kernels().flat_map(|movement| movement.read.ranges()).copied().collect();
            let mut written = WrittenBytes::default();
            kernels().for_each(|movement| bytes::add(&mut written, &movement.written));
            (read, written)
        };
        (0..modules).map(of_module).unzip()
    }
}

/// Lines in which several modules write the same bytes.
fn contended(written: &[WrittenBytes]) -> LineSet {
    let pairs = (0..written.len()).flat_map(|one| written[..one].iter().map(move |other| (one, other)));
    pairs.flat_map(|(one, other)| bytes::common(&written[one], other).ranges().to_vec()).collect()
}

fn count(lines: &LineSet, lines_per_page: u64) -> u64 {
    pages_of(lines, lines_per_page).iter().map(|pages| pages.end - pages.start).sum()
}

fn page_kinds(read: &[LineSet], written: &[LineSet], lines_per_page: u64) -> PageKinds {
    let mut uses: Vec<(u64, usize, bool)> = Vec::new();
    for (sets, writes) in [(read, false), (written, true)] {
        for (module, lines) in sets.iter().enumerate() {
            uses.extend(pages_of(lines, lines_per_page).into_iter().flatten().map(|page| (page, module, writes)));
        }
    }
    uses.sort_unstable_by_key(|&(page, module, writes)| (page, module, !writes));
    uses.dedup_by_key(|(page, module, _)| (*page, *module));
    let mut kinds = PageKinds::default();
    for page in uses.chunk_by(|one, other| one.0 == other.0) {
        let writers = page.iter().filter(|(_, _, writes)| *writes).count();
        kinds.add(match (page.len(), writers) {
            (1, _) => PageKind::Private,
            (_, 0) => PageKind::ReadOnly,
            (_, 1) => PageKind::OneWriter,
            (_, _) => PageKind::ManyWriters,
        });
    }
    kinds
}
