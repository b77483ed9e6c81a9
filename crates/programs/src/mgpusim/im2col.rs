//! Unfolds an image: an output row for each element in the filter, a column for each position of the filter.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
pub(super) const THREADS: u32 = 256;

/// Instructions for a division with remainder: a product and a difference in addition. Source: LLVM, DivRemPairs.
const DIVIDED: u16 = DIVISION + 2;

parameters! {
    /// side of the image of 4-byte floats, at scale 1; scales by the root
    pub(super) const SIDE = side: count(1..=1 << 13) = 512, MI300A_KERNELS;
}

parameters! {
    /// side of the filter
    pub(super) const FILTER = filter: count(1..=15) = 3, MI300A_KERNELS;
}

program! {
    /// unfolds an image into the columns of a matrix product: divisions by run-time values
    pub(crate) static IM2COL = "im2col", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        SIDE;
        FILTER;
    }
    lay_out(name, request, memory) {
        let side = request.scale.side_of(request.values.count("side"));
        let filter = request.values.count("filter");
        require(name, filter <= side, || format!("a filter of {filter} is wider than an image of {side}"))?;
        let field = side - filter + 1;
        let cells = filter * filter * field * field;
        check_indices(name, cells, "elements of columns")?;
    }
    /// An image and its columns.
    pub(super) struct Unfolding {
        pub(super) input: Array<f32>[side * side],
        /// `[filter squared][field squared]`.
        pub(super) columns: Array<f32>[cells],
        pub(super) side, filter: i32,
        /// Filter positions along a side.
        pub(super) field: i32,
        seed: u64 = request.seed,
    }
}

impl Unfolding {
    pub(super) fn kernel(&self, cta: &mut Cta<'_>) {
        let places = self.field * self.field;
        cta.each_warp(|warp| {
            let p = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            warp.when(p.lt(places), |warp| {
                let p = warp.compute(ComputeClass::Int, DIVIDED, p);
                let (row, column) = (p / self.field, p % self.field);
                for q in 0..self.filter * self.filter {
                    // Two divisions with their remainders, on values shared by all lanes, and the bounds.
                    let at = (row + q / self.filter) * self.side + column + q % self.filter;
                    let at = warp.compute(ComputeClass::Int, 2 * DIVIDED + 8 + ADDRESS, at);
                    let value = warp.load(self.input, at);
                    let to = warp.compute(ComputeClass::Int, 1 + ADDRESS, p + q * places);
                    warp.store(self.columns, to, value);
                }
            });
        });
    }

    pub(super) fn launch(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let places = (self.field * self.field) as u64;
        let grid = Grid::new("im2col", places.div_ceil(u64::from(THREADS)), THREADS);
        host.launch(grid, |cta| self.kernel(cta))
    }

    /// Expected contents of the columns.
    pub(super) fn expected(&self) -> Vec<f32> {
        let (side, filter, field) = (self.side as u64, self.filter as u64, self.field as u64);
        let value = |at: u64| {
            let (q, p) = (at / (field * field), at % (field * field));
            noise::unit(self.seed, (p / field + q / filter) * side + p % field + q % filter)
        };
        (0..self.columns.len()).map(value).collect()
    }
}

impl Instance for Unfolding {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| noise::unit(self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        self.launch(host)?;
        host.copy_to_host(self.columns);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        compare("columns", memory.to_vec(self.columns), self.expected(), 0.0)
    }
}
