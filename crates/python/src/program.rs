//! Programs from columns, launch by launch.

use crate::buffer::IntBuffer;
use crate::execute::Failure;
use crate::interrupt::interruptible;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::path::PathBuf;
use tombolo_workload::trace::{ColumnData, ColumnValues, TableBuilder, TraceError, write};

/// Builder of a program. The columns and words are those of a table (docs/traces.md).
#[pyclass(module = "tombolo._native")]
pub(crate) struct ProgramBuilder {
    builder: Option<TableBuilder>,
}

/// A column with its owner.
enum Owned {
    One(i64),
    Array(IntBuffer),
}

impl Owned {
    fn values(&self) -> ColumnValues<'_> {
        match self {
            Owned::One(value) => ColumnValues::One(*value),
            Owned::Array(buffer) => buffer.values(),
        }
    }
}

#[pymethods]
impl ProgramBuilder {
    /// An empty program.
    #[new]
    fn new(name: &str) -> ProgramBuilder {
        ProgramBuilder { builder: Some(TableBuilder::new(name)) }
    }

    /// Adds an operation of the host: `fields` are pairs of a column and its text.
    fn host(&mut self, operation: &str, fields: Vec<(String, String)>) -> PyResult<()> {
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        self.open()?.host(operation, &fields).map_err(|error| failed(&error))
    }

    /// Adds a launch: `columns` are triples of a name, a number or an array of whole numbers, and the words that the
    /// numbers stand for, or none.
    fn launch(
        &mut self,
        py: Python<'_>,
        kernel: &str,
        columns: Vec<(String, Bound<'_, PyAny>, Vec<String>)>,
    ) -> PyResult<()> {
        let mut owned = Vec::with_capacity(columns.len());
        for (name, values, words) in columns {
            let values = match values.cast::<PyInt>() {
                Ok(number) => Owned::One(number.extract()?),
                Err(_) => Owned::Array(IntBuffer::of(&values, &name)?),
            };
            owned.push((name, values, words));
        }
        let builder = self.open()?;
        let launched = interruptible(py, || {
            let given: Vec<(&str, ColumnData<'_>)> = owned
                .iter()
                .map(|(name, values, words)| (name.as_str(), ColumnData { values: values.values(), words }))
                .collect();
            builder.launch(kernel, &given)
        });
        let launched = launched?.map_err(|error| failed(&error));
        if launched.is_err() {
            // What was read of the launch is part of the builder.
            self.builder = None;
        }
        launched
    }

    /// Writes the whole program to `path` in the native format of traces, and ends the builder.
    fn write(&mut self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.open()?;
        let builder = self.builder.take();
        let written = interruptible(py, move || {
            let program = builder.expect("it is open").build()?;
            write(&*program, &path)
        });
        written?.map_err(|error| failed(&error))
    }
}

impl ProgramBuilder {
    fn open(&mut self) -> PyResult<&mut TableBuilder> {
        let ended = "the program is complete, or a launch of it was refused: it takes nothing more";
        self.builder.as_mut().ok_or_else(|| Failure::new_err(("program", ended)))
    }
}

fn failed(error: &TraceError) -> PyErr {
    let kind = if matches!(error, TraceError::Io { .. }) { "file" } else { "program" };
    Failure::new_err((kind, error.to_string()))
}
