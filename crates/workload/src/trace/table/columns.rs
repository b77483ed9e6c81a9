//! A program from columns in memory: the rows of a table, without its text.
//!
//! Columns are read in place. A launch is encoded CTA by CTA, so that memory beside the columns holds the encoded streams
//! and the rows of one CTA. A row that the fast path does not understand becomes a row of text, for the reader of tables.

use super::program::{BuiltLaunch, Location, MOST_WARPS, TableProgram, WarpPosition, WarpRow, laid_out};
use super::reader::{MOST_CTAS, TableReader};
use super::row::{AccessKind, Column, Columns, LAST_ADDRESS, MOST_BYTES, Row, WarpOperation};
use crate::trace::error::{Mismatch, TraceError};
use csv::StringRecord;
use rustc_hash::FxHashMap;
use tombolo_types::stream::Program;
use tombolo_types::{ArrayInfo, LineSize, StopFlag};

/// Line size of the encoded streams; a machine with other lines adapts them.
const LINE_SIZE: LineSize = LineSize::B128;

/// Values of a column.
#[derive(Clone, Copy, Debug)]
pub enum ColumnValues<'a> {
    /// One value for all rows.
    One(i64),
    /// Bytes.
    U8(&'a [u8]),
    /// Unsigned numbers of two bytes.
    U16(&'a [u16]),
    /// Unsigned numbers of four bytes.
    U32(&'a [u32]),
    /// Unsigned numbers of eight bytes; those above `i64::MAX` are refused where they are used.
    U64(&'a [u64]),
    /// Signed bytes.
    I8(&'a [i8]),
    /// Signed numbers of two bytes.
    I16(&'a [i16]),
    /// Signed numbers of four bytes.
    I32(&'a [i32]),
    /// Signed numbers of eight bytes.
    I64(&'a [i64]),
}

impl ColumnValues<'_> {
    /// Number of rows; `None` if the column fits any number.
    pub fn rows(&self) -> Option<usize> {
        match self {
            ColumnValues::One(_) => None,
            ColumnValues::U8(values) => Some(values.len()),
            ColumnValues::U16(values) => Some(values.len()),
            ColumnValues::U32(values) => Some(values.len()),
            ColumnValues::U64(values) => Some(values.len()),
            ColumnValues::I8(values) => Some(values.len()),
            ColumnValues::I16(values) => Some(values.len()),
            ColumnValues::I32(values) => Some(values.len()),
            ColumnValues::I64(values) => Some(values.len()),
        }
    }

    #[inline]
    fn at(&self, row: usize) -> i64 {
        match self {
            ColumnValues::One(value) => *value,
            ColumnValues::U8(values) => values[row].into(),
            ColumnValues::U16(values) => values[row].into(),
            ColumnValues::U32(values) => values[row].into(),
            // Larger numbers fit no column; the largest one is refused in their place.
            ColumnValues::U64(values) => i64::try_from(values[row]).unwrap_or(i64::MAX),
            ColumnValues::I8(values) => values[row].into(),
            ColumnValues::I16(values) => values[row].into(),
            ColumnValues::I32(values) => values[row].into(),
            ColumnValues::I64(values) => values[row],
        }
    }
}

/// A column: numbers, or indices into a list of words. A negative number is an empty field.
#[derive(Clone, Copy, Debug)]
pub struct ColumnData<'a> {
    /// The numbers.
    pub values: ColumnValues<'a>,
    /// The words that the numbers stand for; empty for a column of numbers.
    pub words: &'a [String],
}

impl ColumnData<'_> {
    fn text(&self, row: usize) -> String {
        match usize::try_from(self.values.at(row)) {
            Err(_) => String::new(),
            Ok(number) => self.words.get(number).cloned().unwrap_or_else(|| number.to_string()),
        }
    }
}

/// Builds a program launch by launch. The rows, their columns and their words are those of a table (docs/traces.md), with
/// two differences: arrays are declared before the launches that access them, and a launch is given whole.
pub struct TableBuilder {
    name: String,
    columns: Columns,
    reader: TableReader,
    built: Vec<BuiltLaunch>,
}

impl TableBuilder {
    /// An empty program.
    pub fn new(name: &str) -> TableBuilder {
        let header = StringRecord::from(Column::ALL.iter().map(|column| column.name()).collect::<Vec<_>>());
        let columns = Columns::of(&header).unwrap_or_else(|_| unreachable!("the columns are those of a table"));
        TableBuilder { name: name.to_owned(), columns, reader: TableReader::default(), built: Vec::new() }
    }

    /// Adds an operation of the host, or declares an array. `fields`: the row's columns, except the kernel.
    ///
    /// # Errors
    /// Fails if a table with this row would be refused.
    pub fn host(&mut self, operation: &str, fields: &[(&str, &str)]) -> Result<(), TraceError> {
        let place = || format!("host operation {operation}");
        let mut texts = vec![String::new(); Column::ALL.len()];
        texts[Column::Operation as usize] = operation.to_owned();
        for (name, text) in fields {
            let column = column(name).map_err(|mismatch| mismatch.in_row(&self.name, place()))?;
            texts[column as usize] = (*text).to_owned();
        }
        let record = StringRecord::from(texts);
        let row = Row { columns: &self.columns, record: &record };
        let arrays = self.reader.arrays.len();
        let read = self.reader.host(&row).and_then(|()| declared(&self.reader, arrays, &row));
        read.map_err(|mismatch| mismatch.in_row(&self.name, place()))
    }

    /// Adds a launch of `kernel`. Rows may be in any order; memory for their order is needed unless they are sorted by
    /// GPU, CTA and warp.
    ///
    /// # Errors
    /// Fails if a column is unknown or has another number of rows, if a table with these rows would be refused, or if an
    /// array was not declared. The builder is then no longer of use.
    pub fn launch(&mut self, kernel: &str, columns: &[(&str, ColumnData<'_>)]) -> Result<(), TraceError> {
        let program = self.name.clone();
        let whole = |mismatch: Mismatch| mismatch.in_row(&program, format!("kernel {kernel}"));
        let mut given = [None; Column::ALL.len()];
        for (name, data) in columns {
            given[column(name).map_err(whole)? as usize] = Some(*data);
        }
        let kernels = [kernel.to_owned()];
        given[Column::Kernel as usize] = Some(ColumnData { values: ColumnValues::One(0), words: &kernels });
        let number = ColumnData { values: ColumnValues::One(self.built.len() as i64), words: &[] };
        given[Column::Launch as usize].get_or_insert(number);
        let rows = rows(&given).map_err(whole)?;
        let mut launch = LaunchReader::new(&self.columns, &mut self.reader, &given);
        let built = launch.read(rows).map_err(|failure| failure.of(&program, kernel))?;
        self.built.push(built);
        let events = match &self.reader.launches[..] {
            [.., launch] if self.reader.launches.len() == self.built.len() => launch.check_events(),
            _ => return Err(whole(Mismatch::new("the number of one launch, which no earlier launch has", b"launch"))),
        };
        events.map_err(|(row, mismatch)| mismatch.in_row(&program, format!("kernel {kernel}, row {row}")))
    }

    /// The whole program.
    ///
    /// # Errors
    /// Fails without a launch, or if a launch has more threads than a CTA may have.
    pub fn build(self) -> Result<Box<dyn Program>, TraceError> {
        let TableBuilder { name, reader, built, .. } = self;
        if built.is_empty() {
            return Err(Mismatch::new("a launch", b"").in_row(&name, "at its end".to_owned()));
        }
        let arrays = laid_out(&reader.arrays);
        let program = TableProgram::new((name.clone(), LINE_SIZE), &reader.launches, built, &reader.steps, arrays);
        let program = program.map_err(|(row, mismatch)| mismatch.in_row(&name, format!("row {row} of a launch")))?;
        Ok(Box::new(program))
    }
}

impl Mismatch {
    fn in_row(self, program: &str, place: String) -> TraceError {
        TraceError::Row { program: program.to_owned(), place, expected: self.expected, found: self.found }
    }
}

/// The column called `name`.
fn column(name: &str) -> Result<Column, Mismatch> {
    let found = Column::ALL.iter().find(|column| column.name() == name);
    let names = || Column::ALL.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ");
    found.copied().ok_or_else(|| Mismatch::new(format!("a column: {}", names()), name.as_bytes()))
}

/// Number of rows in `columns`, all equal.
fn rows(columns: &[Option<ColumnData<'_>>]) -> Result<usize, Mismatch> {
    let lengths = Column::ALL.iter().zip(columns).filter_map(|(column, data)| Some((column, data.as_ref()?)));
    let mut rows: Option<(usize, &str)> = None;
    for (column, data) in lengths {
        let Some(here) = data.values.rows() else { continue };
        let (known, first) = *rows.get_or_insert((here, column.name()));
        if here != known {
            let expected = format!("{known} rows in column {}, as in column {first}", column.name());
            return Err(Mismatch { expected, found: here.to_string() });
        }
    }
    let rows = rows.map_or(1, |(rows, _)| rows);
    if rows == 0 || u32::try_from(rows).is_err() {
        return Err(Mismatch { expected: "1 to 2^32 - 1 rows".to_owned(), found: rows.to_string() });
    }
    Ok(rows)
}

/// Refuses an array that a row would have declared by its access.
fn declared(reader: &TableReader, known: usize, row: &Row<'_>) -> Result<(), Mismatch> {
    let undeclared = reader.arrays[known..].iter().any(|array| !array.declared);
    if undeclared { Err(row.mismatch(Column::Array, "an array that was declared")) } else { Ok(()) }
}

/// Reason for which a launch was not read.
enum LaunchFailure {
    Row(usize, Mismatch),
    Stopped,
}

impl LaunchFailure {
    fn of(self, program: &str, kernel: &str) -> TraceError {
        match self {
            LaunchFailure::Row(row, mismatch) => mismatch.in_row(program, format!("kernel {kernel}, row {row}")),
            LaunchFailure::Stopped => TraceError::Stopped,
        }
    }
}

/// Columns that decide a warp's operation, apart from its place in memory.
const DECIDING: [Column; 6] =
    [Column::Operation, Column::Order, Column::Scope, Column::Count, Column::Chain, Column::Links];

/// Reads the rows of a launch.
struct LaunchReader<'a> {
    columns: &'a Columns,
    reader: &'a mut TableReader,
    given: &'a [Option<ColumnData<'a>>; Column::ALL.len()],
    arrays: Vec<ArrayInfo>,
    /// Operations by the values of their deciding columns.
    operations: FxHashMap<[i64; DECIDING.len()], WarpOperation>,
    /// Arrays by their numbers in the column.
    array_numbers: Vec<Option<u32>>,
    /// The launch's number, once its first row is read.
    launch: Option<u32>,
}

impl<'a> LaunchReader<'a> {
    fn new(
        columns: &'a Columns,
        reader: &'a mut TableReader,
        given: &'a [Option<ColumnData<'a>>; Column::ALL.len()],
    ) -> LaunchReader<'a> {
        let arrays = laid_out(&reader.arrays);
        let words = given[Column::Array as usize].map_or(&[][..], |data| data.words);
        let array_numbers = words.iter().map(|name| reader.array_numbers.get(name).copied()).collect();
        let operations = FxHashMap::default();
        LaunchReader { columns, reader, given, arrays, operations, array_numbers, launch: None }
    }

    /// The number in a column; negative if the column is absent.
    #[inline]
    fn number(&self, column: Column, row: usize) -> i64 {
        self.given[column as usize].as_ref().map_or(-1, |data| data.values.at(row))
    }

    /// A number that counts from 0 if the field is empty.
    #[inline]
    fn place(&self, column: Column, row: usize) -> i64 {
        self.number(column, row).max(0)
    }

    /// Reads all rows and encodes the CTAs.
    fn read(&mut self, rows: usize) -> Result<BuiltLaunch, LaunchFailure> {
        // The first row of the table describes the launch.
        let mut first = Some(self.by_text(0)?);
        let order = self.order(rows);
        let at = |index: usize| order.as_ref().map_or(index, |order| order[index] as usize);
        let (mut built, mut cta, stop) = (BuiltLaunch::default(), Vec::new(), StopFlag::current());
        let mut place = None;
        for index in 0..rows {
            let row = at(index);
            let read = match first.take_if(|_| row == 0) {
                Some(first) => first,
                None => self.row(row)?,
            };
            let here = (read.position.gpu, read.position.cta);
            if place.replace(here).is_some_and(|before| before != here) {
                self.close(&mut cta, &mut built)?;
                if stop.is_set() {
                    return Err(LaunchFailure::Stopped);
                }
            }
            cta.push(read);
        }
        self.close(&mut cta, &mut built)?;
        Ok(built)
    }

    /// Encodes a CTA.
    fn close(&self, cta: &mut Vec<WarpRow>, built: &mut BuiltLaunch) -> Result<(), LaunchFailure> {
        let added = built.add(cta, &self.arrays, LINE_SIZE);
        cta.clear();
        added.map_err(|(row, mismatch)| LaunchFailure::Row(row as usize, mismatch))
    }

    /// The order of the rows by GPU, CTA and warp; `None` if they are sorted.
    fn order(&self, rows: usize) -> Option<Vec<u32>> {
        let key = |row: usize| {
            let gpu = self.number(Column::Gpu, row);
            (gpu, self.place(Column::Cta, row), self.place(Column::Warp, row))
        };
        if (1..rows).all(|row| key(row - 1) <= key(row)) {
            return None;
        }
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|row| key(*row as usize));
        Some(order)
    }

    /// Reads a row: in place if it is a common one, otherwise as text.
    #[inline]
    fn row(&mut self, row: usize) -> Result<WarpRow, LaunchFailure> {
        match self.in_place(row) {
            Some(read) => Ok(read),
            None => self.by_text(row),
        }
    }

    #[inline]
    fn in_place(&self, row: usize) -> Option<WarpRow> {
        let operation = *self.operations.get(&DECIDING.map(|column| self.number(column, row)))?;
        let waits = matches!(operation, WarpOperation::Access(AccessKind::Wait, _));
        if waits || self.number(Column::Flag, row) >= 0 {
            return None;
        }
        let launch = self.launch?;
        let has_gpus = self.reader.launches[launch as usize].has_gpus;
        let gpu = u8::try_from(self.number(Column::Gpu, row)).ok();
        let cta = u32::try_from(self.place(Column::Cta, row)).ok().filter(|cta| *cta < MOST_CTAS)?;
        let warp = u32::try_from(self.place(Column::Warp, row)).ok().filter(|warp| *warp < MOST_WARPS)?;
        if gpu.is_some() != has_gpus {
            return None;
        }
        let location = if operation.has_address() { self.location(row)? } else { Location::default() };
        let position = WarpPosition { launch, gpu, cta, warp };
        Some(WarpRow { position, operation, location, event: None, line: row as u64 })
    }

    #[inline]
    fn location(&self, row: usize) -> Option<Location> {
        let bytes = u64::try_from(self.number(Column::Bytes, row)).ok()?;
        if bytes == 0 {
            return Some(Location::default());
        }
        let address = self.place(Column::Address, row) as u64;
        let end = address.checked_add(bytes).filter(|end| *end <= LAST_ADDRESS && bytes <= MOST_BYTES)?;
        let name = self.number(Column::Array, row);
        let array = match usize::try_from(name) {
            Ok(name) => {
                let number = (*self.array_numbers.get(name)?)?;
                Some(number).filter(|number| end <= self.arrays[*number as usize].bytes)?.into()
            }
            Err(_) => None,
        };
        (self.reader.by_array == Some(array.is_some())).then_some(Location { array, address, bytes })
    }

    /// Reads a row as the text of a table.
    #[cold]
    fn by_text(&mut self, row: usize) -> Result<WarpRow, LaunchFailure> {
        let failed = |mismatch| LaunchFailure::Row(row, mismatch);
        let texts = self.given.iter().map(|data| data.as_ref().map_or_else(String::new, |data| data.text(row)));
        let record = StringRecord::from(texts.collect::<Vec<_>>());
        let text = Row { columns: self.columns, record: &record };
        let read = self.reader.warp(&text, row as u64).map_err(failed)?;
        declared(self.reader, self.arrays.len(), &text).map_err(failed)?;
        self.operations.insert(DECIDING.map(|column| self.number(column, row)), read.operation);
        self.launch = Some(read.position.launch);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::stream::CtaStream;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    fn numbers(values: &[i64]) -> ColumnData<'_> {
        ColumnData { values: ColumnValues::I64(values), words: &[] }
    }

    /// Streams of all CTAs, and what else a run reads.
    fn contents(program: &dyn Program) -> (Vec<CtaStream>, String) {
        let mut streams = Vec::new();
        for (kernel, info) in (0..).zip(program.kernels()) {
            for cta in 0..info.ctas {
                let mut stream = CtaStream::default();
                program.cta(kernel, cta, &mut stream).expect("it decodes");
                streams.push(stream);
            }
        }
        (streams, format!("{:?} {:?} {:?}", program.kernels(), program.commands(), program.arrays()))
    }

    const TABLE: &str = "kernel,gpu,warp,operation,array,address,bytes,order,scope,flag,count\n\
        ,,,array,data,,4096,,,,4\n\
        ,,,array,ready,,4,,,,\n\
        k,1,0,wait,ready,0,4,acquire,sys,7,\n\
        k,0,1,load,data,256,512,,,,\n\
        k,0,0,store,data,0,128,,,,\n\
        k,1,0,load,data,0,128,,,,\n\
        k,0,0,store,ready,0,4,release,sys,7,\n\
        k,1,0,fp32,,,,,,,3\n\
        k,0,1,use,,,,,,,\n";

    /// The launch of [`TABLE`], with one value replaced.
    fn built(column: &str, row: usize, value: i64) -> Result<Box<dyn Program>, String> {
        let mut columns = vec![
            ("gpu", vec![1, 0, 0, 1, 0, 1, 0], words(&[])),
            ("warp", vec![0, 1, 0, 0, 0, 0, 1], words(&[])),
            ("operation", vec![0, 1, 2, 1, 2, 3, 4], words(&["wait", "load", "store", "fp32", "use"])),
            ("array", vec![1, 0, 0, 0, 1, -1, -1], words(&["data", "ready"])),
            ("address", vec![0, 256, 0, 0, 0, -1, -1], words(&[])),
            ("bytes", vec![4, 512, 128, 128, 4, -1, -1], words(&[])),
            ("order", vec![0, -1, -1, -1, 1, -1, -1], words(&["acquire", "release"])),
            ("scope", vec![0, -1, -1, -1, 0, -1, -1], words(&["sys"])),
            ("flag", vec![7, -1, -1, -1, 7, -1, -1], words(&[])),
            ("count", vec![-1, -1, -1, -1, -1, 3, -1], words(&[])),
        ];
        let (_, values, _) = columns.iter_mut().find(|(name, ..)| *name == column).expect("a column");
        values[row] = value;
        let of = |(name, values, words): &'static (&'static str, Vec<i64>, Vec<String>)| {
            (*name, ColumnData { words, ..numbers(values) })
        };
        let columns: &'static Vec<_> = Box::leak(Box::new(columns));
        let given: Vec<_> = columns.iter().map(of).collect();
        let mut builder = TableBuilder::new("t");
        let text = |error: TraceError| error.to_string();
        builder.host("array", &[("array", "data"), ("bytes", "4096"), ("count", "4")]).map_err(text)?;
        builder.host("array", &[("array", "ready"), ("bytes", "4")]).map_err(text)?;
        builder.launch("k", &given).map_err(text)?;
        builder.build().map_err(text)
    }

    #[test]
    fn columns_and_the_table_with_their_rows_are_one_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, TABLE).unwrap();
        let table = TableProgram::open(&path, "t".to_owned(), LINE_SIZE).unwrap();
        let columns = built("gpu", 0, 1).unwrap();
        assert_eq!(contents(&*columns), contents(&table));
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_row_and_column() {
        let refused = |column, row, value| built(column, row, value).map(drop).expect_err("it is wrong");
        let cases = [
            (
                refused("address", 3, 4000),
                "row 3: expected in column address, an offset inside array data, of 4096 bytes",
            ),
            (refused("bytes", 2, 1 << 20), "row 2: expected in column bytes, a number from 1 to 65280"),
            (refused("operation", 5, 9), "row 5: expected in column operation, an operation of a warp"),
            (refused("warp", 6, 64), "row 6: expected in column warp, a number below 64"),
            (refused("gpu", 1, 300), "row 1: expected in column gpu, a whole number of at most 8 bits"),
            (refused("gpu", 2, -1), "row 2: expected in column gpu, a GPU in all rows of a launch"),
            (refused("flag", 0, -1), "row 0: expected in column flag, the event to wait for"),
            (refused("flag", 4, 8), "row 0: expected a store or an atomic of the launch"),
            (refused("array", 1, 5), "row 1: expected in column array, an array that was declared, found `5`"),
            (refused("array", 1, -1), "row 1: expected in column array, an array in all accesses"),
        ];
        for (message, expected) in cases {
            assert!(message.starts_with(&format!("program t, kernel k, {expected}")), "{message}");
        }
    }

    #[test]
    fn columns_have_known_names_and_equal_lengths() {
        let mut builder = TableBuilder::new("t");
        let operation = words(&["load"]);
        let load = ColumnData { values: ColumnValues::One(0), words: &operation };
        let refused = |builder: &mut TableBuilder, columns: &[(&str, ColumnData<'_>)]| {
            builder.launch("k", columns).expect_err("it is wrong").to_string()
        };
        let message = refused(&mut builder, &[("operation", load), ("adress", numbers(&[0]))]);
        assert!(message.contains("expected a column: gpu, stream,") && message.contains("`adress`"), "{message}");
        let message = refused(&mut builder, &[("address", numbers(&[0, 1])), ("bytes", numbers(&[4]))]);
        assert!(message.contains("expected 2 rows in column bytes, as in column address, found 1"), "{message}");
        assert!(builder.build().is_err_and(|error| error.to_string().contains("a launch")));
    }
}
