//! All points as one table: CSV and Parquet, a row a point, a column a counter.

use crate::campaign::Results;
use crate::point::Point;
use crate::point_result::Counter;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The columns that say what a point is, before its counters.
const LABELS: [&str; 10] = [
    "key",
    "pass",
    "point_machine",
    "settings",
    "point_design",
    "point_workload",
    "seed",
    "point_scale",
    "model",
    "error",
];

/// Points and their counters.
pub(crate) struct Sheet {
    columns: Vec<String>,
    /// One cell a column; `None` where a point has no such counter.
    rows: Vec<Vec<Option<Counter>>>,
}

impl Sheet {
    /// A row for each of `points` that has an answer, in their order.
    pub(crate) fn of(points: &[Point], results: &Results) -> Sheet {
        let answered = points.iter().filter_map(|point| Some((point, results.get(point.key())?)));
        let rows: Vec<_> = answered.map(|(point, result)| row(point, result.as_ref())).collect();
        let mut names: Vec<String> = rows.iter().flat_map(|row| row.1.keys().cloned()).collect();
        names.sort();
        names.dedup();
        let cells = |(labels, mut counters): (Vec<String>, BTreeMap<String, Counter>)| {
            let labels = labels.into_iter().map(|label| Some(Counter::Word(label)));
            labels.chain(names.iter().map(|name| counters.remove(name))).collect()
        };
        let rows = rows.into_iter().map(cells).collect();
        Sheet { columns: LABELS.iter().map(|label| (*label).to_owned()).chain(names.iter().cloned()).collect(), rows }
    }

    /// As RFC 4180 has it.
    pub(crate) fn csv(&self) -> String {
        let line = |cells: Vec<String>| format!("{}\r\n", cells.join(","));
        let text = |cell: &Option<Counter>| match cell {
            None => String::new(),
            Some(Counter::Whole(count)) => count.to_string(),
            Some(Counter::Real(value)) => value.to_string(),
            Some(Counter::Word(word)) => quoted(word),
        };
        let head = line(self.columns.iter().map(|name| quoted(name)).collect());
        self.rows.iter().fold(head, |sheet, row| sheet + &line(row.iter().map(text).collect()))
    }

    /// As Apache Parquet: whole counters as 64-bit integers, measures as doubles, words as strings.
    ///
    /// # Errors
    /// None of a table in memory is known.
    pub(crate) fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = (0..self.columns.len()).map(|column| self.field(column)).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("points").with_fields(fields).build()?);
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

    fn physical(&self, column: usize) -> Physical {
        let mut kind = Physical::INT64;
        for cell in self.rows.iter().filter_map(|row| row[column].as_ref()) {
            match cell {
                Counter::Word(_) => return Physical::BYTE_ARRAY,
                Counter::Real(_) => kind = Physical::DOUBLE,
                Counter::Whole(count) if *count > i64::MAX as u64 => kind = Physical::DOUBLE,
                Counter::Whole(_) => {}
            }
        }
        // Without a row there is no cell to tell; what names points are words.
        if column < LABELS.len() { Physical::BYTE_ARRAY } else { kind }
    }

    fn field(&self, column: usize) -> Result<Arc<Type>, ParquetError> {
        let physical = self.physical(column);
        let word = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let builder = Type::primitive_type_builder(&self.columns[column], physical);
        Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).with_logical_type(word).build()?))
    }

    fn write_column(&self, column: usize, cells: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let present: Vec<i16> = self.rows.iter().map(|row| i16::from(row[column].is_some())).collect();
        let values = || self.rows.iter().filter_map(|row| row[column].as_ref());
        match self.physical(column) {
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

type Row = (Vec<String>, BTreeMap<String, Counter>);

fn row(point: &Point, result: Result<&Arc<crate::PointResult>, &String>) -> Row {
    let identity = point.identity();
    let labels = vec![
        point.key().to_string(),
        point.pass.word().to_owned(),
        point.machine.name.clone(),
        point.settings.join("; "),
        point.design.name.clone(),
        point.workload.label.clone(),
        identity.seed.to_string(),
        identity.scale.clone(),
        identity.model.clone(),
        result.err().cloned().unwrap_or_default(),
    ];
    (labels, result.map(|outcome| outcome.counters()).unwrap_or_default())
}

/// A cell that may hold commas, quotes or lines.
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
        let labels = |key: &str| LABELS.map(|_| Some(Counter::Word(key.to_owned()))).to_vec();
        let more = |cells: [Option<Counter>; 2], key| [labels(key), cells.to_vec()].concat();
        let columns = LABELS.iter().map(|label| (*label).to_owned()).chain(["count".into(), "share".into()]).collect();
        let rows = vec![
            more([Some(Counter::Whole(7)), Some(Counter::Real(0.1))], "a,\"b\""),
            more([None, Some(Counter::Whole(2))], "c"),
        ];
        Sheet { columns, rows }
    }

    #[test]
    fn csv_quotes_what_holds_commas() {
        let text = sheet().csv();
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert!(lines[0].ends_with(",count,share"), "{text}");
        assert!(lines[1].starts_with("\"a,\"\"b\"\"\",") && lines[1].ends_with(",7,0.1"), "{text}");
        assert!(lines[2].ends_with(",c,,2"), "{text}");
    }

    #[test]
    fn parquet_reads_back_with_its_types() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&sheet().parquet().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "a,\"b\"");
        assert_eq!(rows[0].get_long(LABELS.len()).unwrap(), 7);
        assert!(rows[1].get_long(LABELS.len()).is_err(), "it is null");
        assert_eq!(rows[1].get_double(LABELS.len() + 1).unwrap(), 2.0);
    }
}
