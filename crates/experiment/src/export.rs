//! Exports results to tidy tables in CSV and Parquet: a row per point, and rows for kernels, GPUs, modules and links.
//!
//! Every row in every table begins with the point's key and its distinguishing fields: machine, design, workload, seed,
//! scale, one or two columns for each setting, and the speed-up over its baseline. A numeric setting is stored in
//! `set.KEY` in base units (bytes, bytes per second, seconds, hertz, picojoules). Its original spelling is stored in
//! `set.KEY.text`.

use crate::campaign::Results;
use crate::error::SpecError;
use crate::grid::{Change, Numbers};
use crate::plan::ExperimentPlan;
use crate::point::{Key, Point};
use crate::point_result::{Counter, PointResult, fields};
use crate::repeat::of_machine;
use crate::spec::Relative;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::quantity::ValueForm;
use tombolo_machine::{Description, MachineConfig};
use tombolo_system::RunRecord;
use tombolo_system::record::KernelRecord;
use tombolo_types::Clock;

/// Column names and types, also known for a table without rows.
type Columns = Vec<(String, Physical)>;

/// Columns about the point in every row, before the settings.
const LABELS: [(&str, Physical); 11] = [
    ("key", Physical::BYTE_ARRAY),
    ("pass", Physical::BYTE_ARRAY),
    ("machine", Physical::BYTE_ARRAY),
    ("design", Physical::BYTE_ARRAY),
    ("workload", Physical::BYTE_ARRAY),
    ("seed", Physical::INT64),
    ("scale", Physical::DOUBLE),
    ("model", Physical::BYTE_ARRAY),
    ("speedup", Physical::DOUBLE),
    ("baseline", Physical::BYTE_ARRAY),
    ("baseline_key", Physical::BYTE_ARRAY),
];
/// Prefix before the path of a setting.
const SET: &str = "set.";
/// Suffix after the path of a numeric setting: the column with its spelling.
const TEXT: &str = ".text";
/// Prefix before a digest in CSV. Without it, spreadsheets and data frames would read a digest like `12e34567` in
/// scientific notation.
const DIGEST_MARK: char = 'd';
/// Suffix in the names of digest columns.
const DIGEST: &str = "digest";
/// Error column for a point without a result.
const ERROR: &str = "error";

/// Record fields already present in every row's point columns, and lists with separate tables.
const ELSEWHERE: [&str; 7] = ["machine", "design", "workload", "scale", "links.", "gpus.", "modules."];

/// A table.
pub(crate) struct Sheet {
    /// File name without extension.
    pub(crate) name: &'static str,
    columns: Columns,
    /// Rows, with a cell per column; `None` for an empty cell.
    rows: Vec<Vec<Option<Counter>>>,
}

/// Speed-up for a point over its baseline.
pub(crate) struct SpeedUp {
    value: f64,
    baseline: String,
    key: Key,
}

/// Returns the speed-up for each point in `plans`, from the first figure that reports a speed-up for the point;
/// repetitions are included. A baseline has speed-up 1.
///
/// # Errors
/// Returns an error if a repetition is not possible.
pub(crate) fn speedups(
    plans: &[ExperimentPlan],
    robust: bool,
    numbers: &mut Numbers<'_>,
) -> Result<BTreeMap<Key, SpeedUp>, SpecError> {
    let mut found = BTreeMap::new();
    for plan in plans {
        let changes: Vec<Change> = std::iter::once(Change::default()).chain(plan.changes(robust)?).collect();
        let coordinates = |change| plan.coordinates(change).into_iter().map(move |at| (at, change));
        for (at, change) in changes.iter().flat_map(coordinates) {
            if plan.metric(at.metric).relative != Some(Relative::SpeedUp) {
                continue;
            }
            let (Ok(point), Ok(base)) = (plan.point(at, change), plan.point(plan.base(at), change)) else { continue };
            let Some(value) = plan.value(at, change, numbers) else { continue };
            let over = |value| SpeedUp { value, baseline: base.label(), key: base.key().clone() };
            found.entry(point.key().clone()).or_insert_with(|| over(value));
            found.entry(base.key().clone()).or_insert_with(|| over(1.0));
        }
    }
    Ok(found)
}

/// Source data for the exported tables.
pub(crate) struct Export<'a> {
    answered: Vec<(&'a Point, Result<&'a PointResult, &'a String>)>,
    /// Paths set by any point.
    set: Vec<String>,
    speedups: &'a BTreeMap<Key, SpeedUp>,
}

impl<'a> Export<'a> {
    /// Collects the points in `points` with a result or an error, in order.
    pub(crate) fn of(points: &'a [Point], results: &'a Results, speedups: &'a BTreeMap<Key, SpeedUp>) -> Export<'a> {
        let answer = |point: &'a Point| Some((point, results.get(point.key())?.as_ref().map(Arc::as_ref)));
        let answered: Vec<_> = points.iter().filter_map(answer).collect();
        let paths = answered.iter().flat_map(|(point, _)| &point.settings).map(|setting| path_and_value(setting).0);
        let set: BTreeSet<String> = paths.map(str::to_owned).collect();
        Export { answered, set: set.into_iter().collect(), speedups }
    }

    /// Returns all tables.
    pub(crate) fn sheets(&self) -> [Sheet; 5] {
        [
            self.points(),
            self.members("kernels", ("launch", Physical::INT64), |record| launches(&record.kernels)),
            self.members("gpus", ("gpu", Physical::BYTE_ARRAY), |record| named(&record.gpus, "gpu")),
            self.members("modules", ("module", Physical::BYTE_ARRAY), |record| named(&record.modules, "module")),
            self.members("links", ("link", Physical::BYTE_ARRAY), |record| named(&record.links, "link")),
        ]
    }

    /// Returns the table with a row per point and a column per counter.
    fn points(&self) -> Sheet {
        let is_here = |name: &String| {
            ELSEWHERE.iter().all(|other| match other.ends_with('.') {
                true => !name.starts_with(other),
                false => name != other,
            })
        };
        let counters = |result: &Result<&PointResult, &String>| {
            let all = result.map(PointResult::counters).unwrap_or_default();
            let mut here: BTreeMap<_, _> = all.into_iter().filter(|(name, _)| is_here(name)).collect();
            here.extend(result.err().map(|error| (ERROR.to_owned(), Counter::Word(error.clone()))));
            here
        };
        let rows = self.answered.iter().map(|(point, result)| (*point, counters(result))).collect();
        self.sheet("results", vec![(ERROR.to_owned(), Physical::BYTE_ARRAY)], rows)
    }

    /// Returns the table with a row for each member in a list of each simulated point. The first column identifies the
    /// member.
    fn members(
        &self,
        name: &'static str,
        (head, kind): (&str, Physical),
        of: impl Fn(&RunRecord) -> Vec<Fields>,
    ) -> Sheet {
        let mut all = Vec::new();
        for (point, result) in &self.answered {
            if let Ok(PointResult::Simulation(record)) = result {
                all.extend(of(record).into_iter().map(|member| (*point, member)));
            }
        }
        self.sheet(name, vec![(head.to_owned(), kind)], all)
    }

    /// Builds the table from rows that belong to points: identifying columns, then `first`, then the remaining columns
    /// by name.
    fn sheet(&self, name: &'static str, first: Columns, rows: Vec<(&Point, Fields)>) -> Sheet {
        let fixed = LABELS.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
        let set = self.set.iter().flat_map(|path| {
            let own = (format!("{SET}{path}"), Physical::BYTE_ARRAY);
            let text = form(path).is_number().then(|| (format!("{SET}{path}{TEXT}"), Physical::BYTE_ARRAY));
            std::iter::once(own).chain(text)
        });
        let mut columns: Columns = fixed.chain(set).chain(first).collect();
        let known: BTreeSet<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let others: BTreeSet<&String> = rows.iter().flat_map(|(_, fields)| fields.keys()).collect();
        let others = others.into_iter().filter(|name| !known.contains(*name));
        columns.extend(others.map(|name| (name.clone(), Physical::INT64)));
        let row = |(point, fields): (&Point, Fields)| {
            let labels = self.labels(point);
            columns.iter().map(|(name, _)| labels.get(name).or_else(|| fields.get(name)).cloned()).collect()
        };
        let rows: Vec<Vec<Option<Counter>>> = rows.into_iter().map(row).collect();
        for (at, (_, kind)) in columns.iter_mut().enumerate() {
            *kind = physical(rows.iter().filter_map(|row| row[at].as_ref())).unwrap_or(*kind);
        }
        Sheet { name, columns, rows }
    }

    fn labels(&self, point: &Point) -> Fields {
        let identity = point.identity();
        let word = |text: &str| Counter::Word(text.to_owned());
        let scale = point.machine.scale;
        let mut labels = BTreeMap::from([
            ("key".to_owned(), word(&point.key().to_string())),
            ("pass".to_owned(), word(point.pass.word())),
            ("machine".to_owned(), word(&point.machine.name)),
            ("design".to_owned(), word(&point.design.name)),
            ("workload".to_owned(), word(&point.workload.label)),
            ("seed".to_owned(), Counter::Whole(identity.seed)),
            ("scale".to_owned(), Counter::Real(scale.numerator() as f64 / scale.denominator() as f64)),
            ("model".to_owned(), word(&identity.model)),
        ]);
        if let Some(SpeedUp { value, baseline, key }) = self.speedups.get(point.key()) {
            labels.insert("speedup".to_owned(), Counter::Real(*value));
            labels.insert("baseline".to_owned(), word(baseline));
            labels.insert("baseline_key".to_owned(), word(&key.to_string()));
        }
        for setting in &point.settings {
            let (path, value) = path_and_value(setting);
            if !form(path).is_number() {
                labels.insert(format!("{SET}{path}"), read(value));
                continue;
            }
            labels.insert(format!("{SET}{path}{TEXT}"), word(value));
            let number = setting_number(setting, point.machine.sm.clock);
            labels.extend(number.map(|number| (format!("{SET}{path}"), counter(number))));
        }
        labels
    }
}

type Fields = BTreeMap<String, Counter>;

/// Converts the members in a list to fields; the member's name becomes the field `head`.
fn named(list: &[impl Serialize], head: &str) -> Vec<Fields> {
    let member = |one| {
        let mut member = fields(one);
        let name = member.remove("name");
        member.extend(name.map(|name| (head.to_owned(), name)));
        member
    };
    list.iter().map(member).collect()
}

/// Converts launches to fields, numbered by position. A launch without a named GPU belongs to all GPUs.
fn launches(kernels: &[KernelRecord]) -> Vec<Fields> {
    let launch = |(at, kernel): (usize, &KernelRecord)| {
        let mut launch = fields(kernel);
        launch.insert("launch".to_owned(), Counter::Whole(at as u64));
        launch.entry("gpu".to_owned()).or_insert_with(|| Counter::Word("all".to_owned()));
        launch
    };
    kernels.iter().enumerate().map(launch).collect()
}

/// Splits a setting into its canonical path and its value.
fn path_and_value(setting: &str) -> (&str, &str) {
    setting.split_once('=').map_or((setting, ""), |(path, value)| (of_machine(path), value.trim()))
}

/// Returns the value form of a setting; any form if the path belongs to no machine or design.
fn form(path: &str) -> ValueForm {
    let of_machine = Description::<MachineConfig>::key(path);
    of_machine.or_else(|| Description::<DesignConfig>::key(path)).map_or(ValueForm::Any, |key| key.form)
}

/// Returns the numeric value of a setting in its base unit, or `None` for a setting without a numeric value. `clock`
/// converts cycles.
pub(crate) fn setting_number(setting: &str, clock: Clock) -> Option<f64> {
    let (path, value) = path_and_value(setting);
    form(path).number(value, clock)
}

/// Converts a number to a counter: a whole counter if the number is whole and exact in a double.
fn counter(number: f64) -> Counter {
    // Below 2^53, every whole number has its own double.
    let is_whole = number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number);
    if is_whole { Counter::Whole(number as u64) } else { Counter::Real(number) }
}

/// Parses a value: a number if it is a plain number, otherwise a word.
fn read(value: &str) -> Counter {
    let real = || value.parse().ok().filter(|value: &f64| value.is_finite()).map(Counter::Real);
    value.parse().ok().map(Counter::Whole).or_else(real).unwrap_or_else(|| Counter::Word(value.to_owned()))
}

/// Returns a type wide enough for all cells, or `None` for no cells.
fn physical<'a>(cells: impl Iterator<Item = &'a Counter>) -> Option<Physical> {
    let mut kind = None;
    for cell in cells {
        match cell {
            Counter::Word(_) => return Some(Physical::BYTE_ARRAY),
            Counter::Real(_) => kind = Some(Physical::DOUBLE),
            Counter::Whole(count) if *count > i64::MAX as u64 => kind = Some(Physical::DOUBLE),
            Counter::Whole(_) => kind = kind.or(Some(Physical::INT64)),
        }
    }
    kind
}

impl Sheet {
    /// Formats the table in CSV per RFC 4180.
    pub(crate) fn csv(&self) -> String {
        let line = |cells: Vec<String>| format!("{}\r\n", cells.join(","));
        let cell = |(cell, (name, _)): (&Option<Counter>, &(String, Physical))| match cell {
            None => String::new(),
            Some(Counter::Word(word)) if name.ends_with(DIGEST) => format!("{DIGEST_MARK}{word}"),
            Some(cell) => quoted(&text(cell)),
        };
        let head = line(self.columns.iter().map(|(name, _)| quoted(name)).collect());
        let row = |row: &Vec<Option<Counter>>| line(row.iter().zip(&self.columns).map(cell).collect());
        self.rows.iter().fold(head, |sheet, cells| sheet + &row(cells))
    }

    /// Encodes the table in Apache Parquet: whole counters in 64-bit integers, measures in doubles, words in strings.
    ///
    /// # Errors
    /// No failing case is known for a table in memory.
    pub(crate) fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = (0..self.columns.len()).map(|column| self.field(column)).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder(self.name).with_fields(fields).build()?);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default()))?;
        let mut group = writer.next_row_group()?;
        let mut column = 0;
        while let Some(mut cells) = group.next_column()? {
            self.write_column(column, &mut cells)?;
            cells.close()?;
            column += 1;
        }
        group.close()?;
        writer.into_inner()
    }

    fn field(&self, column: usize) -> Result<Arc<Type>, ParquetError> {
        let (name, physical) = &self.columns[column];
        let word = (*physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let builder = Type::primitive_type_builder(name, *physical);
        Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).with_logical_type(word).build()?))
    }

    fn write_column(&self, column: usize, cells: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let present: Vec<i16> = self.rows.iter().map(|row| i16::from(row[column].is_some())).collect();
        let values = || self.rows.iter().filter_map(|row| row[column].as_ref());
        match self.columns[column].1 {
            Physical::INT64 => {
                let counts: Vec<i64> = values().filter_map(whole).collect();
                cells.typed::<Int64Type>().write_batch(&counts, Some(&present), None)?;
            }
            Physical::DOUBLE => {
                let numbers: Vec<f64> = values().filter_map(Counter::number).collect();
                cells.typed::<DoubleType>().write_batch(&numbers, Some(&present), None)?;
            }
            _ => {
                let words: Vec<ByteArray> = values().map(|cell| ByteArray::from(text(cell).as_str())).collect();
                cells.typed::<ByteArrayType>().write_batch(&words, Some(&present), None)?;
            }
        }
        Ok(())
    }
}

fn whole(cell: &Counter) -> Option<i64> {
    match cell {
        Counter::Whole(count) => i64::try_from(*count).ok(),
        Counter::Real(_) | Counter::Word(_) => None,
    }
}

fn text(cell: &Counter) -> String {
    match cell {
        Counter::Whole(count) => count.to_string(),
        Counter::Real(value) => value.to_string(),
        Counter::Word(word) => word.clone(),
    }
}

/// Quotes a cell that contains commas, quotes or newlines.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use std::io::Write;

    fn sheet() -> Sheet {
        let row = |key: &str, count, share| vec![Some(Counter::Word(key.to_owned())), count, Some(share)];
        let rows = vec![row("a,\"b\"", Some(Counter::Whole(7)), Counter::Real(0.1)), row("c", None, Counter::Whole(2))];
        let kinds = [Physical::BYTE_ARRAY, Physical::INT64, Physical::DOUBLE];
        let columns = ["key", "count", "share"].map(str::to_owned).into_iter().zip(kinds).collect();
        Sheet { name: "results", columns, rows }
    }

    #[test]
    fn a_plain_number_that_is_set_is_a_number() {
        assert_eq!(
            [read("24576"), read("0.5"), read("3MB")],
            [Counter::Whole(24576), Counter::Real(0.5), Counter::Word("3MB".into())]
        );
        assert_eq!(path_and_value("l2.bytes = 3MB"), ("l2.bytes", "3MB"));
        assert_eq!(path_and_value("machine.l2.bytes=3MB"), ("l2.bytes", "3MB"));
        let cells = [Counter::Whole(1), Counter::Real(0.5)];
        assert_eq!(physical(cells.iter()), Some(Physical::DOUBLE));
        assert_eq!(physical([].into_iter()), None);
    }

    #[test]
    fn csv_quotes_what_holds_commas() {
        let text = sheet().csv();
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines[0], "key,count,share");
        assert!(lines[1] == "\"a,\"\"b\"\"\",7,0.1", "{text}");
        assert_eq!(lines[2], "c,,2");
    }

    #[test]
    fn parquet_reads_back_with_its_types() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&sheet().parquet().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "a,\"b\"");
        assert_eq!(rows[0].get_long(1).unwrap(), 7);
        assert!(rows[1].get_long(1).is_err(), "it is null");
        assert_eq!(rows[1].get_double(2).unwrap(), 2.0);
    }
}
