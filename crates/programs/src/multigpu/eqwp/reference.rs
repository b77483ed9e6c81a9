//! Plain reference program for the waves, by whole arrays, with sums in the kernels' order.

use super::{Ground, REACH};

/// All fields, each indexed by cell.
pub(super) struct Fields {
    pub(super) velocity: [Vec<f32>; 3],
    pub(super) stress: [Vec<f32>; 6],
    pub(super) displacement: Vec<f32>,
    /// Index distance between neighbours along each axis.
    strides: [usize; 3],
    /// Cells inside, that is, outside the constant frame.
    inside: Vec<usize>,
}

impl Fields {
    /// Computes the fields after all steps.
    pub(super) fn after(ground: &Ground) -> Fields {
        let (cells, count) = (ground.cells, ground.cells.count());
        let zeros = || vec![0.0; count as usize];
        let is_inside = |index: &i32| {
            let sides = [cells.x, cells.y, cells.z];
            cells.coordinates(*index).into_iter().zip(sides).all(|(at, side)| (REACH..side - REACH).contains(&at))
        };
        let mut fields = Fields {
            velocity: std::array::from_fn(|_| zeros()),
            stress: std::array::from_fn(|_| zeros()),
            displacement: zeros(),
            strides: [1, cells.x, cells.x * cells.y].map(|stride| stride as usize),
            inside: (0..count).filter(is_inside).map(|index| index as usize).collect(),
        };
        for step in 0..ground.iterations {
            fields.strain();
            let (row, [columns, planes]) = ground.forced();
            let force = |cell: usize| {
                let [x, y, z] = cells.coordinates(cell as i32);
                let acts = step < 50 && y == row && columns.contains(&x) && planes.contains(&z);
                if acts { -10_000.0 } else { 0.0 }
            };
            fields.push(0, [0, 1, 2], |_| 0.0);
            fields.push(1, [1, 3, 4], force);
            fields.push(2, [2, 4, 5], |_| 0.0);
        }
        fields
    }

    /// Slope of a field along an axis; a cell is ten metres long.
    fn slope(&self, field: &[f32], cell: usize, axis: usize) -> f32 {
        let across = |distance: usize| {
            let reach = distance * self.strides[axis];
            field[cell + reach] - field[cell - reach]
        };
        let change: f32 = across(2) * (-1.0 / 12.0) + across(1) * (2.0 / 3.0);
        (f64::from(change) / 10.0) as f32
    }

    fn strain(&mut self) {
        let (first, second) = (32.0, 174.87);
        let add = |stress: &mut f32, rate: f32| *stress = (f64::from(*stress) + 0.5 * f64::from(rate)) as f32;
        for &cell in &self.inside {
            let slope = |velocity: usize, axis| self.slope(&self.velocity[velocity], cell, axis);
            let [x, y, z] = [slope(0, 0), slope(1, 1), slope(2, 2)];
            let normal =
                |own, others: f32| ((first + 2.0 * second) * f64::from(own) + first * f64::from(others)) as f32;
            let shear = |sum: f32| (second * f64::from(sum)) as f32;
            let rates = [
                normal(x, y + z),
                shear(slope(0, 1) + slope(1, 0)),
                shear(slope(0, 2) + slope(2, 0)),
                normal(y, x + z),
                shear(slope(1, 2) + slope(2, 1)),
                normal(z, x + y),
            ];
            self.stress.iter_mut().zip(rates).for_each(|(stress, rate)| add(&mut stress[cell], rate));
        }
    }

    /// Updates the velocity along an axis from three stresses.
    fn push(&mut self, axis: usize, stresses: [usize; 3], force: impl Fn(usize) -> f32) {
        let density = 1800.0;
        for &cell in &self.inside {
            let [x, y, z] = [0, 1, 2].map(|along| self.slope(&self.stress[stresses[along]], cell, along));
            let sum = f64::from(x + y + z + force(cell));
            let velocity = &mut self.velocity[axis][cell];
            *velocity = (f64::from(*velocity) + 0.5 * (1.0 / density) * sum) as f32;
            if axis == 1 {
                let moved = f64::from(self.displacement[cell]) + 0.25 * (1.0 / density) * sum;
                self.displacement[cell] = moved as f32;
            }
        }
    }
}
