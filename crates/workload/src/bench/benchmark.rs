//! A workload assembled from parts, and helpers for checks of its result.

use super::workload::{Instance, Request, Workload, WorkloadError};
use crate::parameter::Parameter;
use crate::simt::{Lanes, Memory, Warp};

/// Instructions for forming a 64-bit address from a 32-bit index. Source: LLVM AMDGPU, `global_load` with a vector
/// address: extend and shift, add low, add high.
pub const ADDRESS: u16 = 3;
/// Instructions for a division (or modulo) of 32-bit integers by a value known only at run time. Source: LLVM AMDGPU,
/// expansion of `udiv`: a reciprocal in floating point, two corrections; counted from its listing.
pub const DIVISION: u16 = 20;

/// Lays out the arrays of the workload with the given name: see [`Workload::lay_out`].
pub type LayOut = fn(&'static str, &mut Request, &mut Memory) -> Result<Box<dyn Instance>, WorkloadError>;

/// Properties of a workload: false unless they are declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// True if work does not follow footprint: see [`Workload::nonlinear`].
    pub nonlinear: bool,
    /// True if no address and no branch depends on data: see [`Workload::data_independent`].
    pub data_independent: bool,
    /// True if the workload is written for several GPUs: see [`Workload::partitioned_by_gpus`].
    pub partitioned_by_gpus: bool,
}

impl Properties {
    /// No property.
    pub const NONE: Properties = Properties { nonlinear: false, data_independent: false, partitioned_by_gpus: false };
}

/// A workload assembled from parts; [`program!`](crate::program) declares one.
pub struct Benchmark {
    /// Name on the command line: lower-case letters, digits and hyphens.
    pub name: &'static str,
    /// Description for a list, in a single line.
    pub about: &'static str,
    /// Source for the workload's shape.
    pub source: &'static str,
    /// Parameters.
    pub parameters: &'static [Parameter],
    /// Properties.
    pub properties: Properties,
    /// Adds the arrays, and returns the program over them.
    pub lay_out: LayOut,
}

impl Workload for Benchmark {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn nonlinear(&self) -> bool {
        self.properties.nonlinear
    }

    fn data_independent(&self) -> bool {
        self.properties.data_independent
    }

    fn partitioned_by_gpus(&self) -> bool {
        self.properties.partitioned_by_gpus
    }

    fn lay_out(&self, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
        (self.lay_out)(self.name, request, memory)
    }
}

/// Returns an error with `message` unless `holds` is true: for parameters that do not fit each other.
///
/// # Errors
/// Returns [`WorkloadError::Shape`].
pub fn require(workload: &'static str, holds: bool, message: impl FnOnce() -> String) -> Result<(), WorkloadError> {
    if holds { Ok(()) } else { Err(WorkloadError::Shape { workload, message: message() }) }
}

/// Sets the active lanes to `value(lane)`, for arithmetic on values that have already been waited for. The cost must be
/// stated by [`Warp::compute`].
pub fn map_active<T: Copy + Default>(warp: &Warp<'_>, mut value: impl FnMut(u32) -> T) -> Lanes<T> {
    let active = warp.active();
    Lanes::by_lane(|lane| if active >> lane & 1 == 1 { value(lane) } else { T::default() })
}

/// Runs `body` for each active lane.
pub fn each_active(warp: &Warp<'_>, body: impl FnMut(u32)) {
    (0..warp.width()).filter(|lane| warp.active() >> lane & 1 == 1).for_each(body);
}

/// Compares `found` with `expected`, within `tolerance` relative to the expected magnitude or to 1. `Err` names the
/// first differing element.
///
/// # Errors
/// Returns a sentence for the user.
pub fn compare(
    what: &str,
    found: impl IntoIterator<Item = f32>,
    expected: impl IntoIterator<Item = f32>,
    tolerance: f32,
) -> Result<(), String> {
    let (mut found, mut expected) = (found.into_iter(), expected.into_iter());
    for index in 0_u64.. {
        let (found, expected) = match (found.next(), expected.next()) {
            (None, None) => break,
            (Some(found), Some(expected)) => (found, expected),
            (Some(_), None) | (None, Some(_)) => {
                return Err(format!("{what} and what is expected differ from {index} on"));
            }
        };
        let near = found == expected || (found - expected).abs() <= tolerance * expected.abs().max(1.0);
        if !near {
            return Err(format!("{what}[{index}] is {found}, expected {expected}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_or_another_length_is_named() {
        let compared =
            |found: &[f32], expected: &[f32]| compare("sum", found.iter().copied(), expected.iter().copied(), 1e-3);
        assert_eq!(compared(&[1.0, 2000.0], &[1.0005, 2001.0]), Ok(()));
        assert_eq!(compared(&[1.0, 2.0], &[1.0, 2.5]).unwrap_err(), "sum[1] is 2, expected 2.5");
        assert!(compared(&[f32::NAN], &[1.0]).is_err());
        let shorter = compared(&[1.0], &[1.0, 2.0]).unwrap_err();
        assert_eq!(shorter, "sum and what is expected differ from 1 on");
        assert!(compared(&[1.0], &[]).is_err());
    }
}
