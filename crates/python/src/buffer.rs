//! Arrays of whole numbers by the buffer protocol, read in place.
//!
//! The stable interface of CPython has the buffer protocol from 3.11 on. Since 3.0 its functions and the layout of its view
//! have been the same, and every interpreter exports them: they are declared here, for 3.9 and 3.10.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use tombolo_workload::trace::ColumnValues;

/// `Py_buffer` of CPython.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut pyo3::ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

/// Asks for the elements' format, and for the shape: elements are then contiguous. Source: `PyBUF_FORMAT | PyBUF_ND`.
const FLAGS: c_int = 0x4 | 0x8;

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut pyo3::ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// A contiguous one-dimensional array of whole numbers, which its owner keeps in place meanwhile.
pub(crate) struct IntBuffer {
    view: Box<View>,
    kind: Kind,
}

/// Types of elements.
#[derive(Clone, Copy)]
enum Kind {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
}

impl IntBuffer {
    /// Borrows the elements of `object`; `name` is its column's in errors.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<IntBuffer> {
        let mut view = Box::new(View {
            buf: std::ptr::null_mut(),
            obj: std::ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        });
        // SAFETY: the object is alive and the interpreter lock is held; the view is large enough, and has its final place.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, FLAGS) } != 0 {
            let reason =
                PyErr::take(object.py()).map_or_else(String::new, |error| error.value(object.py()).to_string());
            let message = format!("column {name}: expected a number, words or a contiguous array: {reason}");
            return Err(PyTypeError::new_err(message));
        }
        // From here on, dropping the buffer releases the view.
        let mut buffer = IntBuffer { view, kind: Kind::U8 };
        if buffer.view.ndim != 1 {
            let message = format!("column {name}: expected an array of one dimension, found {}", buffer.view.ndim);
            return Err(PyValueError::new_err(message));
        }
        let format = if buffer.view.format.is_null() {
            "B".to_owned()
        } else {
            // SAFETY: a format that is not null is a C string, which lives as long as the view.
            unsafe { CStr::from_ptr(buffer.view.format) }.to_string_lossy().into_owned()
        };
        let wrong = || {
            PyTypeError::new_err(format!(
                "column {name}: expected an array of whole numbers, found elements `{format}`"
            ))
        };
        let code = format.trim_start_matches(['@', '=', '<']);
        let signed = match code {
            "b" | "h" | "i" | "l" | "q" | "n" => true,
            "B" | "H" | "I" | "L" | "Q" | "N" | "?" => false,
            _ => return Err(wrong()),
        };
        buffer.kind = match (buffer.view.itemsize, signed) {
            (1, false) => Kind::U8,
            (2, false) => Kind::U16,
            (4, false) => Kind::U32,
            (8, false) => Kind::U64,
            (1, true) => Kind::I8,
            (2, true) => Kind::I16,
            (4, true) => Kind::I32,
            (8, true) => Kind::I64,
            _ => return Err(wrong()),
        };
        let aligned = (buffer.view.buf as usize).is_multiple_of(buffer.view.itemsize as usize);
        if aligned {
            Ok(buffer)
        } else {
            Err(PyValueError::new_err(format!("column {name}: its array is not aligned")))
        }
    }

    /// The elements.
    pub(crate) fn values(&self) -> ColumnValues<'_> {
        match self.kind {
            Kind::U8 => ColumnValues::U8(self.elements()),
            Kind::U16 => ColumnValues::U16(self.elements()),
            Kind::U32 => ColumnValues::U32(self.elements()),
            Kind::U64 => ColumnValues::U64(self.elements()),
            Kind::I8 => ColumnValues::I8(self.elements()),
            Kind::I16 => ColumnValues::I16(self.elements()),
            Kind::I32 => ColumnValues::I32(self.elements()),
            Kind::I64 => ColumnValues::I64(self.elements()),
        }
    }

    /// The elements as numbers of type `T`, one of the eight integers, whose size was checked.
    fn elements<T>(&self) -> &[T] {
        let count = self.view.len as usize / size_of::<T>();
        if count == 0 {
            return &[];
        }
        // SAFETY: the view is contiguous and aligned, has `len` bytes and stays in place until it is released. Every bit
        // pattern is a number. The documentation forbids to change an array during the call.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast::<T>(), count) }
    }
}

impl Drop for IntBuffer {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: the view was filled by PyObject_GetBuffer and is released once, under the interpreter lock.
            unsafe { PyBuffer_Release(&raw mut *self.view) }
        });
    }
}

// SAFETY: the elements are only read, and the view's owner is touched under the interpreter lock alone.
unsafe impl Send for IntBuffer {}
// SAFETY: as above.
unsafe impl Sync for IntBuffer {}
