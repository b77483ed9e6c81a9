//! Required exchanges between GPUs, printed by `share`: a row per array for people, a row per array and pair in JSON.

use crate::table::{Cell, Look, Table, bytes};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tombolo_system::movement::ArrayTraffic;
use tombolo_types::stream::Program;

/// Bytes of an array written by one GPU and required by a second GPU.
#[derive(Debug, Serialize)]
pub(crate) struct ExchangeRow {
    /// Name of the array; null for memory outside arrays.
    pub(crate) array: Option<String>,
    /// GPU that writes the bytes.
    pub(crate) writer: u8,
    /// GPU that reads the bytes.
    pub(crate) reader: u8,
    /// Bytes over the whole program, in whole lines. Each line counts once per read with new contents.
    pub(crate) bytes: u64,
}

/// Builds the rows, in array order.
pub(crate) fn exchange_rows(program: &dyn Program, exchanges: &[ArrayTraffic]) -> Vec<ExchangeRow> {
    let row = |one: &ArrayTraffic| ExchangeRow {
        array: one.array.map(|array| program.arrays()[array as usize].name.clone()),
        writer: one.writer.0,
        reader: one.reader.0,
        bytes: one.bytes,
    };
    exchanges.iter().map(row).collect()
}

/// Formats a table with a row per array and a total row; empty without exchanges.
pub(crate) fn exchange_text(rows: &[ExchangeRow], gpus: u8, colours: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(2).with_headings(["array", "who reads what others write", "bytes a pair", "in all"]);
    let mut all = BTreeMap::<(u8, u8), u64>::new();
    let mut add = |name: &str, pairs: &BTreeMap<(u8, u8), u64>| {
        let (who, in_all) = (pattern(pairs.keys().copied(), gpus), bytes(pairs.values().sum()));
        let cells = [name.to_owned(), who, range(pairs.values().copied()), in_all];
        table.row(cells.map(Cell::plain).into_iter().collect());
    };
    for of_array in rows.chunk_by(|one, next| one.array == next.array) {
        let pairs: BTreeMap<_, _> = of_array.iter().map(|row| ((row.writer, row.reader), row.bytes)).collect();
        pairs.iter().for_each(|(pair, bytes)| *all.entry(*pair).or_default() += bytes);
        add(of_array[0].array.as_deref().unwrap_or("no array"), &pairs);
    }
    add("all", &all);
    let title = Look::Strong.paint("What GPUs must send each other", colours);
    format!("\n{title}\n{}", table.render(colours))
}

/// Formats the smallest and the largest size, or a single size if equal.
fn range(sizes: impl Iterator<Item = u64> + Clone) -> String {
    let [least, most] = [sizes.clone().min(), sizes.max()].map(Option::unwrap_or_default);
    if least == most { bytes(least) } else { format!("{} to {}", bytes(least), bytes(most)) }
}

/// Describes the communication pattern in the field's terms.
fn pattern(pairs: impl Iterator<Item = (u8, u8)>, gpus: u8) -> String {
    let pairs: BTreeSet<(u8, u8)> = pairs.collect();
    let of = usize::from(gpus) * usize::from(gpus - 1);
    if pairs.len() == of {
        return "all to all".to_owned();
    }
    let neighbours = |(one, other): &(u8, u8)| one.abs_diff(*other) == 1;
    let around = |(one, other): &(u8, u8)| one.abs_diff(*other) == gpus - 1;
    match (pairs.iter().all(neighbours), pairs.iter().all(|pair| neighbours(pair) || around(pair))) {
        (true, _) => "neighbours".to_owned(),
        (false, true) => "neighbours on a ring".to_owned(),
        (false, false) => format!("{} of {of} pairs", pairs.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_the_names_of_the_field() {
        let named = |pairs: &[(u8, u8)]| pattern(pairs.iter().copied(), 4);
        assert_eq!(named(&[(0, 1), (1, 0), (2, 3)]), "neighbours");
        assert_eq!(named(&[(0, 1), (3, 0), (0, 3)]), "neighbours on a ring");
        assert_eq!(named(&[(0, 2), (0, 1)]), "2 of 12 pairs");
        let every = (0..4).flat_map(|one| (0..4).map(move |other| (one, other))).filter(|(one, other)| one != other);
        assert_eq!(pattern(every, 4), "all to all");
    }

    #[test]
    fn a_table_has_a_row_an_array_and_one_of_all() {
        let row =
            |array: &str, writer, reader, bytes| ExchangeRow { array: Some(array.to_owned()), writer, reader, bytes };
        let text = exchange_text(&[row("a", 0, 1, 128), row("a", 1, 0, 256), row("b", 0, 1, 128)], 2, false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(lines.iter().any(|line| line.join(" ") == "a all to all 128 B to 256 B 384 B"), "{text}");
        assert!(lines.iter().any(|line| line.join(" ") == "all all to all 256 B 512 B"), "{text}");
        assert_eq!(exchange_text(&[], 2, false), "");
    }
}
