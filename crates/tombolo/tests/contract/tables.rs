//! Columns of tables, common to CSV and Parquet.

use crate::Section;
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

/// Tables written by a study, without file extension.
const NAMES: [&str; 5] = ["results", "kernels", "gpus", "modules", "links"];

/// Prefixes of columns whose remaining name is data.
const OPEN: [&str; 3] = ["set.", "blocks.states.", "publication.subscribers."];

/// A table: name and column types.
pub(crate) type Table = (&'static str, Vec<(String, Type)>);

/// Column types, by table and column.
#[derive(Default)]
pub(crate) struct Tables(BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>>);

impl Tables {
    /// Adds the columns of `tables`.
    pub(crate) fn extend(&mut self, tables: Vec<Table>) {
        for (name, columns) in tables {
            let known = self.0.entry(name).or_default();
            let names: BTreeSet<&str> = columns.iter().map(|(column, _)| column.as_str()).collect();
            for (column, kind) in &columns {
                known.entry(spelled(column, &names)).or_default().insert(kind.to_string());
            }
        }
    }

    /// Returns a section per table.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let line = |(column, kinds): (&String, &BTreeSet<String>)| {
            format!("{column}: {}", kinds.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
        };
        let section = |(name, columns): (&&str, &BTreeMap<_, _>)| {
            (format!("columns of {name}.csv and {name}.parquet"), columns.iter().map(line).collect())
        };
        self.0.iter().map(section).collect()
    }
}

/// Replaces the data part of a column name by a placeholder. A suffix after the full name of an existing column is not
/// data: `set.KEY` and `set.KEY.text`.
fn spelled(column: &str, names: &BTreeSet<&str>) -> String {
    let Some(start) = OPEN.iter().find(|start| column.starts_with(**start)) else { return column.to_owned() };
    match column.rsplit_once('.') {
        Some((stem, end)) if names.contains(stem) => format!("{start}{{}}.{end}"),
        _ => format!("{start}{{}}"),
    }
}

/// Reads the tables in a folder, and checks that both files of each table have equal columns.
pub(crate) fn read(folder: &Path) -> Vec<Table> {
    let table = |name: &'static str| {
        let file = File::open(folder.join(format!("{name}.parquet"))).expect("it was written");
        let reader = SerializedFileReader::new(file).expect("it is Parquet");
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        let columns: Vec<(String, Type)> =
            columns.iter().map(|column| (column.name().to_owned(), column.physical_type())).collect();
        let csv = fs::read_to_string(folder.join(format!("{name}.csv"))).expect("it was written");
        let head: Vec<&str> = csv.lines().next().expect("a line of heads").split(',').collect();
        assert_eq!(head, columns.iter().map(|(column, _)| column).collect::<Vec<_>>(), "{name}");
        (name, columns)
    };
    NAMES.map(table).to_vec()
}
