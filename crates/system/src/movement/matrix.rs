//! Who reads what whom has written, by array: what advice on sharing it rests on.

use super::copies::array_lines;
use super::{Movement, bytes, pages_of};
use tombolo_model::schedule::Written;
use tombolo_protocol::elision::{LineSet, Lines};
use tombolo_types::ModuleId;
use tombolo_types::stream::Program;

/// How modules share a page, in the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageKind {
    /// One module alone touches it.
    Private,
    /// Several read it and nobody writes it.
    ReadOnly,
    /// One module writes it and others read it.
    OneWriter,
    /// Several modules write it.
    ManyWriters,
}

/// Pages by how they are shared.
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
    /// The kind of most pages, of two that are level the one that is shared more; `None` where no page is touched.
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

/// What one module reads of what one has written, itself or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who writes.
    pub writer: ModuleId,
    /// Who reads.
    pub reader: ModuleId,
    /// Pages that hold any of it.
    pub pages: u64,
    /// Bytes of it, in whole lines.
    pub bytes: u64,
}

/// How modules share an array, in the whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySharing {
    /// Its index; `None` of lines of no array.
    pub array: Option<u32>,
    /// Its lines; of no array a run of pages that are touched, from the first line to the last.
    pub lines: Lines,
    /// By module, lines that it reads.
    pub read: Vec<LineSet>,
    /// By module, lines that it writes.
    pub written: Vec<LineSet>,
    /// Pages by how they are shared. A page that holds two arrays counts with either.
    pub pages: PageKinds,
    /// By writer, then by reader, where there is anything.
    pub flows: Vec<Flow>,
    /// Lines that any module writes.
    pub written_lines: u64,
    /// Of these, lines of which several modules write the same bytes: a counter, a frontier.
    pub contended_lines: u64,
}

impl Movement {
    /// How modules share each array of `program` that they touch, in order of address; lines of no array come last, a row
    /// for each run of pages.
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
        let row = |(array, lines): (Option<u32>, Lines)| {
            let within = |sets: &[LineSet]| sets.iter().map(|set| set.intersection(&lines.into())).collect();
            let contended = contended.intersection(&lines.into()).count();
            self.row((array, lines), within(&read), within(&written), (bytes, contended))
        };
        named.chain(runs).map(row).collect()
    }

    fn row(
        &self,
        (array, lines): (Option<u32>, Lines),
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

    /// By module what it reads and what it writes in the whole program.
    fn unions(&self) -> (Vec<LineSet>, Vec<Written>) {
        let modules = self.kernels.iter().map(Vec::len).max().unwrap_or_default();
        let of_module = |module: usize| {
            let kernels = || self.kernels.iter().filter_map(move |kernel| kernel.get(module));
            let read = kernels().flat_map(|movement| movement.read.ranges()).copied().collect();
            let mut written = Written::default();
            kernels().for_each(|movement| bytes::add(&mut written, &movement.written));
            (read, written)
        };
        (0..modules).map(of_module).unzip()
    }
}

/// Lines of which several modules write the same bytes.
fn contended(written: &[Written]) -> LineSet {
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
