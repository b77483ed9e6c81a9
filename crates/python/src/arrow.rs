//! Tables as Arrow data: other libraries read them through the Arrow C stream interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{Field, Schema, ffi::FFI_ArrowSchema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyFloat, PyInt, PyString};
use std::sync::Arc;

/// Columns of a table, of equal lengths. A column has one type: bool, int64 (uint64 where a value needs it), float64 or
/// utf8. Missing values are nulls.
#[pyclass(frozen, module = "tombolo._native")]
pub(crate) struct Columns(RecordBatch);

#[pymethods]
impl Columns {
    /// Takes `[(name, values), …]`: values are bool, int, float, str or None; a column of several kinds becomes text,
    /// except int beside float, which becomes float.
    #[new]
    fn new(columns: Vec<(String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Columns> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for (name, values) in columns {
            let array = array(&values)?;
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let batch = if arrays.is_empty() {
            Ok(RecordBatch::new_empty(Arc::new(Schema::empty())))
        } else {
            RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        };
        batch.map(Columns).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The Arrow C stream interface: one batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer casts for itself: the interface lets a producer ignore the request.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The Arrow C schema interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.0.schema());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}

/// Kinds of values in a column.
#[derive(Default)]
struct Kinds {
    bools: bool,
    ints: bool,
    floats: bool,
    texts: bool,
}

/// An array with these values.
fn array(values: &[Bound<'_, PyAny>]) -> PyResult<ArrayRef> {
    let mut kinds = Kinds::default();
    for value in values.iter().filter(|value| !value.is_none()) {
        // In Python, a bool is an int.
        match value {
            _ if value.is_instance_of::<PyBool>() => kinds.bools = true,
            _ if value.is_instance_of::<PyInt>() => kinds.ints = true,
            _ if value.is_instance_of::<PyFloat>() => kinds.floats = true,
            _ => kinds.texts = true,
        }
    }
    fn all<'py, T>(values: &[Bound<'py, PyAny>]) -> PyResult<Vec<Option<T>>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let value =
            |value: &Bound<'py, PyAny>| (!value.is_none()).then(|| value.extract().map_err(Into::into)).transpose();
        values.iter().map(value).collect()
    }
    Ok(match kinds {
        Kinds { bools: true, ints: false, floats: false, texts: false } => Arc::new(BooleanArray::from(all(values)?)),
        Kinds { bools: false, ints: true, floats: false, texts: false } => match all(values) {
            Ok(numbers) => Arc::new(Int64Array::from(numbers)),
            Err(_) => Arc::new(UInt64Array::from(all(values)?)),
        },
        Kinds { bools: false, floats: true, texts: false, .. } => Arc::new(Float64Array::from(all(values)?)),
        _ => Arc::new(StringArray::from(values.iter().map(text).collect::<PyResult<Vec<_>>>()?)),
    })
}

/// A value as text.
fn text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if value.is_none() {
        return Ok(None);
    }
    match value.cast::<PyString>() {
        Ok(text) => Ok(Some(text.to_cow()?.into_owned())),
        Err(_) => Ok(Some(value.str()?.to_cow()?.into_owned())),
    }
}
