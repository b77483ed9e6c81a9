//! A run's launches in the format for stored results: a header, then a row of values per launch. A program may have
//! very many launches.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tombolo_system::record::KernelRecord;

/// Launches in columnar form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launches {
    /// Paths to a row's values, for example `stalls.issue`.
    columns: Vec<String>,
    /// Rows, with a value per column.
    rows: Vec<Vec<Value>>,
}

impl Launches {
    /// Converts a run's launches to columnar form.
    pub(crate) fn of(kernels: &[KernelRecord]) -> Launches {
        let mut columns = Vec::new();
        let rows = kernels.iter().map(|kernel| {
            let mut cells = Vec::new();
            take_apart("", serde_json::to_value(kernel).expect("its keys are strings"), &mut cells);
            if columns.is_empty() {
                columns = cells.iter().map(|(path, _)| path.clone()).collect();
            }
            cells.into_iter().map(|(_, value)| value).collect()
        });
        let rows = rows.collect();
        Launches { columns, rows }
    }

    /// Converts the rows back to records.
    ///
    /// # Errors
    /// Returns an error if a row does not match the header, or lacks a field of a launch.
    pub(crate) fn records(self) -> Result<Vec<KernelRecord>, String> {
        let Launches { columns, rows } = self;
        let record = |(at, row): (usize, Vec<Value>)| {
            if row.len() != columns.len() {
                return Err(format!("launch {at} has {} values of {}", row.len(), columns.len()));
            }
            let mut record = Map::new();
            columns.iter().zip(row).for_each(|(path, value)| put(&mut record, path, value));
            serde_json::from_value(Value::Object(record)).map_err(|error| format!("launch {at}: {error}"))
        };
        rows.into_iter().enumerate().map(record).collect()
    }
}

/// Collects the values inside `value` that are not objects, in path order.
fn take_apart(path: &str, value: Value, into: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            let gap = if path.is_empty() { "" } else { "." };
            fields.into_iter().for_each(|(name, value)| take_apart(&format!("{path}{gap}{name}"), value, into));
        }
        value => into.push((path.to_owned(), value)),
    }
}

/// Inserts a value into the record at the given path.
fn put(record: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => _ = record.insert(path.to_owned(), value),
        Some((first, rest)) => {
            let inner = record.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_system::stalls::StallRecord;

    fn kernel(name: &str, issue: u64) -> KernelRecord {
        let stalls = StallRecord { warp_slot_cycles: issue, issue, ..StallRecord::default() };
        KernelRecord {
            name: name.into(),
            gpu: Some("gpu1".into()),
            end_s: 0.1 + 0.2,
            stalls,
            ..KernelRecord::default()
        }
    }

    #[test]
    fn launches_are_kept_bit_for_bit() {
        let kernels = [kernel("row", 7), KernelRecord { gpu: None, ..kernel("column", u64::MAX) }];
        let text = serde_json::to_string(&Launches::of(&kernels)).unwrap();
        let read: Launches = serde_json::from_str(&text).unwrap();
        assert_eq!(read.records().unwrap(), kernels);
        assert_eq!(Launches::of(&[]).records(), Ok(Vec::new()));
    }

    #[test]
    fn a_row_that_lacks_a_value_is_named() {
        let mut launches = Launches::of(&[kernel("row", 7), kernel("row", 8)]);
        launches.rows[1].pop();
        assert!(launches.records().is_err_and(|reason| reason.starts_with("launch 1 has")));
        let mut nameless = Launches::of(&[kernel("row", 7)]);
        nameless.columns[0] = "other".to_owned();
        assert!(nameless.records().is_err_and(|reason| reason.starts_with("launch 0: missing field")));
    }
}
