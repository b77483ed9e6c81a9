//! The language of programs: kernels over arrays, launched by a host program, written in Rust that reads like CUDA.
//!
//! A program really computes. A single run of it, without a machine, gives the streams of line transactions that every
//! machine and design replays. [`Cta::each_warp`] runs a kernel warp by warp; a [`Warp`] has loads, stores, atomics and
//! branches over its lanes; [`Host`] copies arrays and launches kernels. A reference in [`Instance::verify`] checks the
//! result before anything is simulated.
//!
//! [`program!`] declares a program: name, parameters and arrays. A kernel that doubles an array, with everything around
//! it:
//! ```
//! use tombolo::program::prelude::*;
//! use tombolo::program::register;
//!
//! program! {
//!     /// doubles an array
//!     static DOUBLE = "double", "assumed";
//!     properties: data_independent;
//!     parameters {
//!         /// elements of an array of 4-byte floats, at scale 1
//!         elements: count(1..=1 << 30) = 65_536, "assumed";
//!     }
//!     lay_out(_, request, memory) {}
//!     struct Double {
//!         x: Array<f32>[request.scale.of(elements)],
//!     }
//! }
//!
//! impl Instance for Double {
//!     fn fill(&self, memory: &Memory) {
//!         memory.fill(self.x, |index| index as f32);
//!     }
//!
//!     fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
//!         host.copy_to_device(self.x);
//!         host.launch(Grid::new("double", self.x.len().div_ceil(256), 256), |cta| {
//!             cta.each_warp(|warp| {
//!                 let i = warp.global_thread();
//!                 warp.when(i.cast::<i64>().lt(self.x.len() as i64), |warp| {
//!                     let doubled = warp.load(self.x, i) * 2.0;
//!                     let doubled = warp.compute(ComputeClass::Fp32, 1, doubled);
//!                     warp.store(self.x, i, doubled);
//!                 });
//!             });
//!         })?;
//!         host.copy_to_host(self.x);
//!         Ok(())
//!     }
//!
//!     fn verify(&self, memory: &Memory) -> Result<(), String> {
//!         let found = (0..self.x.len()).map(|index| memory.read(self.x, index));
//!         compare("x", found, (0..self.x.len()).map(|index| 2.0 * index as f32), 0.0)
//!     }
//! }
//!
//! assert!(register(&DOUBLE).is_ok());
//! assert!(register(&DOUBLE).is_err(), "the name is taken");
//! ```

pub use tombolo_programs::{REGISTERED, find, register, suite};
pub use tombolo_workload::bench::{FieldValue, Properties};
pub use tombolo_workload::prelude::{self, *};
