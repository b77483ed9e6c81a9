//! LULESH's formulas, for a single element or node. Source: Karlin, Keasler and Neely, LULESH 2.0 (LLNL-TR-641973), and
//! its reference program.

use super::mesh::CORNERS;

/// Value at each corner along each axis: `[axis][corner]`.
pub(super) type Corners = [[f64; CORNERS]; 3];

/// Small number that keeps divisions finite. Source: LULESH 2.0 (`ptiny`).
const TINY: f64 = 1e-36;
/// Material density at the start. Source: LULESH 2.0 (`refdens`).
const DENSITY: f64 = 1.0;
/// Weight for the hourglass forces. Source: LULESH 2.0 (`hgcoef`).
const HOURGLASS: f64 = 3.0;
/// Thresholds below which velocities, volume changes, energies, pressures and viscosities count as zero. Source: LULESH
/// 2.0.
const VELOCITY_CUT: f64 = 1e-7;
const VOLUME_CUT: f64 = 1e-10;
const ENERGY_CUT: f64 = 1e-7;
const PRESSURE_CUT: f64 = 1e-7;
const VISCOSITY_CUT: f64 = 1e-7;
/// Minimum energy, and bounds for the relative volume. Source: LULESH 2.0 (`emin`, `eosvmin`, `eosvmax`).
const LEAST_ENERGY: f64 = -1e15;
const LEAST_VOLUME: f64 = 1e-9;
const MOST_VOLUME: f64 = 1e9;
/// Limiter and weights for the artificial viscosity. Source: LULESH 2.0 (`monoq_limiter_mult`, `qlc_monoq`,
/// `qqc_monoq`).
const LIMITER: f64 = 2.0;
const LINEAR: f64 = 0.5;
const QUADRATIC: f64 = 2.0 / 3.0;
/// Viscosity weight in the Courant condition, and the largest volume change per step. Source: LULESH 2.0 (`qqc`,
/// `dvovmax`).
const COURANT: f64 = 2.0;
const MOST_CHANGE: f64 = 0.1;

/// Nodes around each face, in ring order.
const RINGS: [[usize; 4]; 6] = [[0, 1, 2, 3], [0, 4, 5, 1], [1, 5, 6, 2], [2, 6, 7, 3], [3, 7, 4, 0], [4, 7, 6, 5]];

/// Hourglass modes: a sign per corner.
const MODES: [[f64; CORNERS]; 4] = [
    [1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0, 1.0],
    [1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0],
    [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0],
    [-1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0],
];

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Vector from corner `from` to corner `to`.
fn edge(at: &Corners, from: usize, to: usize) -> [f64; 3] {
    at.map(|along| along[to] - along[from])
}

fn sum(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Volume of an element, from its corner coordinates.
pub(super) fn volume(at: &Corners) -> f64 {
    let triple = |a, b, c| dot(a, cross(b, c));
    let whole = triple(sum(edge(at, 1, 3), edge(at, 2, 7)), edge(at, 3, 6), edge(at, 0, 2))
        + triple(sum(edge(at, 3, 4), edge(at, 7, 5)), edge(at, 4, 6), edge(at, 0, 7))
        + triple(sum(edge(at, 4, 1), edge(at, 5, 2)), edge(at, 1, 6), edge(at, 0, 5));
    whole / 12.0
}

/// Shape function derivatives, and the element volume derived from them.
pub(super) fn shape(at: &Corners) -> (Corners, f64) {
    let diagonals = [edge(at, 0, 6), edge(at, 3, 5), edge(at, 1, 7), edge(at, 2, 4)];
    let along = |signs: [f64; 4]| -> [f64; 3] {
        std::array::from_fn(|axis| 0.125 * (0..4).map(|which| signs[which] * diagonals[which][axis]).sum::<f64>())
    };
    let (xi, eta, zeta) = (along([1.0, 1.0, -1.0, -1.0]), along([1.0, -1.0, 1.0, -1.0]), along([1.0, 1.0, 1.0, 1.0]));
    let [from_xi, from_eta, from_zeta] = [cross(eta, zeta), cross(zeta, xi), cross(xi, eta)];
    let derivatives = std::array::from_fn(|axis| {
        let (a, b, c) = (from_xi[axis], from_eta[axis], from_zeta[axis]);
        let [first, second, third, fourth] = [-a - b - c, a - b - c, a + b - c, -a + b - c];
        // Opposite corners have opposite derivatives.
        [first, second, third, fourth, -third, -fourth, -first, -second]
    });
    (derivatives, 8.0 * dot(eta, from_eta))
}

/// Corner forces from a stress (one value per axis), and the volume.
pub(super) fn stress_forces(at: &Corners, stress: [f64; 3]) -> (Corners, f64) {
    let mut normals: Corners = [[0.0; CORNERS]; 3];
    for ring in RINGS {
        let [a, b, c, d] = ring.map(|corner| at.map(|along| along[corner]));
        let across: [f64; 3] = std::array::from_fn(|axis| 0.5 * (d[axis] + c[axis] - b[axis] - a[axis]));
        let along: [f64; 3] = std::array::from_fn(|axis| 0.5 * (c[axis] + b[axis] - d[axis] - a[axis]));
        let area = cross(across, along);
        ring.iter().for_each(|corner| (0..3).for_each(|axis| normals[axis][*corner] += 0.25 * area[axis]));
    }
    let forces = std::array::from_fn(|axis| normals[axis].map(|normal| -stress[axis] * normal));
    (forces, shape(at).1)
}

/// Derivatives for the volume with respect to each corner's coordinates.
pub(super) fn volume_derivatives([x, y, z]: &Corners) -> Corners {
    /// Corners that enter a corner's derivative, in the formula's order.
    const AROUND: [[usize; 6]; CORNERS] = [
        [1, 2, 3, 4, 5, 7],
        [2, 3, 0, 5, 6, 4],
        [3, 0, 1, 6, 7, 5],
        [0, 1, 2, 7, 4, 6],
        [7, 6, 5, 0, 3, 1],
        [4, 7, 6, 1, 0, 2],
        [5, 4, 7, 2, 1, 3],
        [6, 5, 4, 3, 2, 0],
    ];
    let of = |a: &[f64; CORNERS], b: &[f64; CORNERS]| -> [f64; CORNERS] {
        std::array::from_fn(|corner| {
            let pair =
                |values: &[f64; CORNERS], i: usize, j: usize| values[AROUND[corner][i]] + values[AROUND[corner][j]];
            pair(a, 1, 2) * pair(b, 0, 1) - pair(a, 0, 1) * pair(b, 1, 2) + pair(a, 0, 4) * pair(b, 3, 4)
                - pair(a, 3, 4) * pair(b, 0, 4)
                - pair(a, 2, 5) * pair(b, 3, 5)
                + pair(a, 3, 5) * pair(b, 2, 5)
        })
    };
    [of(y, z), of(z, x), of(x, y)].map(|along| along.map(|part| part / 12.0))
}

/// Forces against an element's hourglass modes.
pub(super) fn hourglass_forces(at: &Corners, velocities: &Corners, volume: f64, sound: f64, mass: f64) -> Corners {
    let derivatives = volume_derivatives(at);
    let modes = MODES.map(|mode| {
        let moment = at.map(|along| along.iter().zip(mode).map(|(place, mode)| place * mode).sum::<f64>());
        let part = |corner: usize| -> f64 { (0..3).map(|axis| derivatives[axis][corner] * moment[axis]).sum() };
        std::array::from_fn::<f64, CORNERS, _>(|corner| mode[corner] - part(corner) / volume)
    });
    let coefficient = -HOURGLASS * 0.01 * sound * mass / volume.cbrt();
    velocities.map(|velocity| {
        let speeds = modes.map(|mode| mode.iter().zip(velocity).map(|(mode, speed)| mode * speed).sum::<f64>());
        std::array::from_fn(|corner| coefficient * (0..4).map(|mode| modes[mode][corner] * speeds[mode]).sum::<f64>())
    })
}

/// Node velocity after an acceleration that lasts for a time step.
pub(super) fn velocity(before: f64, acceleration: f64, step: f64) -> f64 {
    let after = before + acceleration * step;
    if after.abs() < VELOCITY_CUT { 0.0 } else { after }
}

/// Characteristic length for an element with this volume.
pub(super) fn length(at: &Corners, volume: f64) -> f64 {
    let area = |[a, b, c, d]: [usize; 4]| {
        let (first, second) = (edge(at, a, c), edge(at, b, d));
        let f: [f64; 3] = std::array::from_fn(|axis| first[axis] - second[axis]);
        let g = sum(first, second);
        dot(f, f) * dot(g, g) - dot(f, g) * dot(f, g)
    };
    4.0 * volume / RINGS.into_iter().map(area).fold(0.0, f64::max).sqrt()
}

/// Strain rates along the axes, at node positions half a step back.
pub(super) fn strain(at: &Corners, velocities: &Corners, step: f64) -> [f64; 3] {
    let back =
        std::array::from_fn(|axis| std::array::from_fn(|node| at[axis][node] - 0.5 * step * velocities[axis][node]));
    let (derivatives, volume) = shape(&back);
    std::array::from_fn(|axis| {
        let opposite = [(0, 6), (1, 7), (2, 4), (3, 5)].into_iter().enumerate();
        let part = |(corner, (from, to))| derivatives[axis][corner] * (velocities[axis][from] - velocities[axis][to]);
        opposite.map(part).sum::<f64>() / volume
    })
}

/// Velocity gradients along the element's own axes, and its lengths along them, by axis.
pub(super) fn gradients(at: &Corners, velocities: &Corners, volume: f64) -> ([f64; 3], [f64; 3]) {
    /// Upper and lower corners along each element axis.
    const ENDS: [([usize; 4], [usize; 4]); 3] =
        [([1, 2, 6, 5], [0, 3, 7, 4]), ([3, 2, 6, 7], [0, 1, 5, 4]), ([4, 5, 6, 7], [0, 1, 2, 3])];
    let apart = |values: &Corners, (upper, lower): ([usize; 4], [usize; 4])| {
        values.map(|along| {
            let total = |ends: [usize; 4]| ends.into_iter().map(|corner| along[corner]).sum::<f64>();
            0.25 * (total(upper) - total(lower))
        })
    };
    let [i, j, k] = ENDS.map(|ends| apart(at, ends));
    let areas = [cross(j, k), cross(k, i), cross(i, j)];
    let gradient = |axis: usize| dot(areas[axis], apart(velocities, ENDS[axis])) / (volume + TINY);
    let length = |axis: usize| volume / (dot(areas[axis], areas[axis]) + TINY).sqrt();
    (std::array::from_fn(gradient), std::array::from_fn(length))
}

/// Smoothness of the velocity along an axis, from 0 to 1, given an element's own gradient and its neighbours'
/// gradients.
pub(super) fn smoothness(own: f64, below: f64, above: f64) -> f64 {
    let (below, above) = (below / (own + TINY), above / (own + TINY));
    (0.5 * (below + above)).min(below * LIMITER).min(above * LIMITER).clamp(0.0, 1.0)
}

/// Linear and quadratic artificial viscosity, from gradients, lengths and smoothness by axis.
pub(super) fn viscosity(
    gradients: [f64; 3],
    lengths: [f64; 3],
    smooth: [f64; 3],
    strain: f64,
    density: f64,
) -> [f64; 2] {
    if strain > 0.0 {
        return [0.0; 2];
    }
    let (mut linear, mut quadratic) = (0.0, 0.0);
    for axis in 0..3 {
        let jump = (gradients[axis] * lengths[axis]).min(0.0);
        linear += jump * (1.0 - smooth[axis]);
        quadratic += jump * jump * (1.0 - smooth[axis] * smooth[axis]);
    }
    [-LINEAR * density * linear, QUADRATIC * density * quadratic]
}

/// Relative volume, clamped to the bounds in the equation of state.
pub(super) fn bounded(volume: f64) -> f64 {
    volume.clamp(LEAST_VOLUME, MOST_VOLUME)
}

/// Compression at the end and in the middle of a volume change.
pub(super) fn compressions(volume: f64, change: f64) -> [f64; 2] {
    [1.0 / volume - 1.0, 1.0 / (volume - 0.5 * change) - 1.0]
}

/// Slope for pressure over compressed density against energy: two thirds, as in an ideal gas. Source: LULESH 2.0
/// (`c1s`).
pub(super) const SLOPE: f64 = 2.0 / 3.0;

/// Pressure coefficient, and pressure for an energy at a compression.
pub(super) fn pressure(energy: f64, compression: f64, volume: f64) -> [f64; 2] {
    let coefficient = SLOPE * (compression + 1.0);
    let pressure = coefficient * energy;
    let none = pressure.abs() < PRESSURE_CUT || volume >= MOST_VOLUME;
    [coefficient, if none { 0.0 } else { pressure.max(0.0) }]
}

/// Speed of sound; `energy` is already multiplied by the slope.
pub(super) fn sound(energy: f64, volume: f64, coefficient: f64, pressure: f64) -> f64 {
    let square = (energy + volume * volume * coefficient * pressure) / DENSITY;
    if square <= TINY / 9.0 { TINY.sqrt() / 3.0 } else { square.sqrt() }
}

/// Energy after half the work from the old pressure and viscosity.
pub(super) fn energy_half(energy: f64, change: f64, pressure: f64, viscosity: f64) -> f64 {
    (energy - 0.5 * change * (pressure + viscosity)).max(LEAST_ENERGY)
}

fn cut(energy: f64) -> f64 {
    (if energy.abs() < ENERGY_CUT { 0.0 } else { energy }).max(LEAST_ENERGY)
}

/// Energy after the second half: old pressures have weight 3, midpoint pressures weight 4.
pub(super) fn energy_predicted(energy: f64, change: f64, old: f64, middle: f64) -> f64 {
    cut(energy + 0.5 * change * (3.0 * old - 4.0 * middle))
}

/// Energy by Simpson's rule over old, midpoint and new pressures.
pub(super) fn energy_corrected(energy: f64, change: f64, old: f64, middle: f64, new: f64) -> f64 {
    cut(energy - (7.0 * old - 8.0 * middle + new) * change / 6.0)
}

/// Artificial viscosity for an element under compression.
pub(super) fn viscous(change: f64, sound: f64, linear: f64, quadratic: f64) -> f64 {
    if change > 0.0 { 0.0 } else { sound * linear + quadratic }
}

/// Viscosity, or zero if its magnitude is below the threshold.
pub(super) fn cut_viscosity(viscosity: f64) -> f64 {
    if viscosity.abs() < VISCOSITY_CUT { 0.0 } else { viscosity }
}

/// Relative volume, or exactly 1 if close to it.
pub(super) fn settled(volume: f64) -> f64 {
    if (volume - 1.0).abs() < VOLUME_CUT { 1.0 } else { volume }
}

/// Longest steps by the Courant condition and by the volume change.
pub(super) fn limits(sound: f64, strain: f64, length: f64) -> [f64; 2] {
    if strain == 0.0 {
        return [f64::MAX; 2];
    }
    let viscous = if strain < 0.0 { 64.0 * (COURANT * length * strain).powi(2) } else { 0.0 };
    [length / (sound * sound + viscous).sqrt(), MOST_CHANGE / (strain.abs() + 1e-20)]
}

/// Time step after `step`, from the shortest limits. Source: LULESH 2.0 (`TimeIncrement`).
pub(super) fn next_step(step: f64, [courant, change]: [f64; 2]) -> f64 {
    /// Longest step. Source: LULESH 2.0 (`dtmax`).
    const LONGEST: f64 = 1e-2;
    let free = courant / 2.0;
    let free = if change < free { change * 2.0 / 3.0 } else { free };
    let free = match free / step {
        growth if (1.0..1.1).contains(&growth) => step,
        growth if growth > 1.2 => step * 1.2,
        _ => free,
    };
    free.min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::noise;

    /// Builds a distorted cube.
    fn element() -> Corners {
        std::array::from_fn(|axis| {
            std::array::from_fn(|corner| {
                let offset = [0, 1, 3, 2, 4, 5, 7, 6][corner] >> axis & 1;
                f64::from(offset) + 0.2 * f64::from(noise::unit(axis as u64, corner as u64))
            })
        })
    }

    #[test]
    fn derivatives_of_the_volume_are_its_slopes() {
        let at = element();
        let derivatives = volume_derivatives(&at);
        for axis in 0..3 {
            for corner in 0..CORNERS {
                let [mut low, mut high] = [at; 2];
                low[axis][corner] -= 1e-4;
                high[axis][corner] += 1e-4;
                let slope = (volume(&high) - volume(&low)) / 2e-4;
                assert!((slope - derivatives[axis][corner]).abs() < 1e-9, "{axis} {corner}: {slope}");
            }
        }
    }

    #[test]
    fn a_cube_has_its_volume_length_and_no_hourglass() {
        let at: Corners =
            std::array::from_fn(|axis| [0, 1, 3, 2, 4, 5, 7, 6].map(|offset: i32| 2.0 * f64::from(offset >> axis & 1)));
        assert_eq!((volume(&at), shape(&at).1, length(&at, 8.0)), (8.0, 8.0, 2.0));
        let stretch = at.map(|along| along.map(|place| 0.3 * place));
        let forces = hourglass_forces(&at, &stretch, 8.0, 1.0, 8.0);
        assert!(forces.iter().flatten().all(|force| force.abs() < 1e-14));
        assert!(strain(&at, &stretch, 0.0).iter().all(|rate| (rate - 0.3).abs() < 1e-14));
        let (gradients, lengths) = gradients(&at, &stretch, 8.0);
        assert!(gradients.iter().zip(lengths).all(|(rate, long)| (rate - 0.3).abs() < 1e-14 && long == 2.0));
    }

    #[test]
    fn stresses_push_no_element_as_a_whole() {
        let (forces, _) = stress_forces(&element(), [-1.0, -2.0, -3.0]);
        assert!(forces.iter().all(|along| along.iter().sum::<f64>().abs() < 1e-14));
    }
}
