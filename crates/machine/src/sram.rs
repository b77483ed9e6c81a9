//! Access time and area of an SRAM as a function of its capacity, from a published model. Source: CACTI 7
//! (HewlettPackard/cacti at 1ffd8df) with its own `cache.cfg`, except 32 nm (UMH, TACO 2016, section 5), type RAM,
//! and the entry's word and bus width.

/// An SRAM with a single port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sram {
    /// Time from address to data, in nanoseconds.
    pub nanoseconds: f64,
    /// Area in square millimetres.
    pub square_millimetres: f64,
}

/// Bytes, nanoseconds and square millimetres for the directories in a stack with 1 GB and blocks of 16 KB to 64
/// bytes, with whole bytes per entry: 37 to 5 bytes.
const POINTS: [(u64, f64, f64); 9] = [
    (2_424_832, 2.162_11, 4.645_94),
    (2_752_512, 2.216_47, 4.868_20),
    (3_407_872, 2.431_91, 6.151_54),
    (4_718_592, 2.655_73, 7.937_39),
    (7_340_032, 3.240_85, 12.196_04),
    (12_582_912, 4.149_22, 20.852_10),
    (20_971_520, 4.935_27, 33.486_81),
    (41_943_040, 7.099_93, 66.853_03),
    (83_886_080, 11.125_80, 133.680_77),
];

impl Sram {
    /// The SRAM for this many bytes: linear interpolation between the model's points on logarithmic axes. `None`
    /// beyond the points.
    pub fn of_bytes(bytes: u64) -> Option<Sram> {
        let above = POINTS.iter().position(|(point, ..)| *point >= bytes)?;
        let (low, low_time, low_area) = POINTS[if POINTS[above].0 == bytes { above } else { above.checked_sub(1)? }];
        let (high, high_time, high_area) = POINTS[above];
        let share = if low == high { 0.0 } else { (bytes as f64 / low as f64).ln() / (high as f64 / low as f64).ln() };
        let between = |low: f64, high: f64| low * (high / low).powf(share);
        Some(Sram { nanoseconds: between(low_time, high_time), square_millimetres: between(low_area, high_area) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_hits_the_points_of_the_model_and_grows_between_them() {
        for (bytes, time, area) in POINTS {
            assert_eq!(Sram::of_bytes(bytes), Some(Sram { nanoseconds: time, square_millimetres: area }));
        }
        let sizes = (POINTS[0].0..POINTS[8].0).step_by(1 << 20).map(|bytes| Sram::of_bytes(bytes).unwrap());
        let all: Vec<Sram> = sizes.collect();
        let grows = |pair: &[Sram]| {
            pair[0].nanoseconds < pair[1].nanoseconds && pair[0].square_millimetres < pair[1].square_millimetres
        };
        assert!(all.windows(2).all(grows));
    }

    #[test]
    fn no_value_exists_beyond_the_points() {
        assert_eq!([Sram::of_bytes(1 << 20), Sram::of_bytes(1 << 30), Sram::of_bytes(0)], [None; 3]);
    }
}
