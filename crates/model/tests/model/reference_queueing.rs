//! Links and switches against queueing theory: the values in `data/queueing.csv` come from closed forms.

use tombolo_model::fabric::{Link, LinkConfig, Traffic};
use tombolo_model::fabric::{Switch, SwitchConfig};
use tombolo_types::{Bytes, GpuId, Ps, Rate};

/// Number of packets per measurement. Enough for two digits at 90 % load, with waits correlated over hundreds of
/// packets.
const PACKETS: u64 = 600_000;
/// Link rate 100 GB/s: a byte takes 10 ps.
const RATE: Rate = Rate(100_000_000_000);
const PS_PER_BYTE: f64 = 10.0;

/// Random packet sizes with their shares: (bytes, share).
type Mix = &'static [(u64, f64)];

/// Reference result: a row in the CSV file.
struct Reference {
    mix: &'static str,
    load: f64,
    /// Mean waiting time before the first byte departs, in picoseconds.
    wait_ps: f64,
}

fn references() -> Vec<Reference> {
    let rows = include_str!("../data/queueing.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let [mix, load, wait] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let mix = if mix == "one" { "one" } else { "two" };
        Reference { mix, load: load.parse().unwrap(), wait_ps: wait.parse().unwrap() }
    })
    .collect()
}

fn mix(name: &str) -> Mix {
    if name == "one" { &[(160, 1.0)] } else { &[(32, 0.5), (160, 0.5)] }
}

/// Uniform random numbers in (0, 1], identical in every run (SplitMix64).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
    }
}

/// Mean of a function over the service time in picoseconds.
fn mean_service(mix: Mix, of: fn(f64) -> f64) -> f64 {
    mix.iter().map(|&(bytes, share)| share * of(bytes as f64 * PS_PER_BYTE)).sum()
}

/// Sends [`PACKETS`] packets with exponential gaps that load the server to `load`. Returns the mean over the waits
/// that `send` returns.
fn mean_wait(mix: Mix, load: f64, mut send: impl FnMut(Ps, Bytes) -> Ps) -> f64 {
    let gap = mean_service(mix, |service| service) / load;
    let (mut random, mut now, mut waited) = (Uniform(7), 0.0, 0.0);
    for _ in 0..PACKETS {
        now += -random.next().ln() * gap;
        let mut pick = random.next();
        let bytes = mix.iter().find(|(_, share)| {
            pick -= share;
            pick <= 0.0
        });
        let bytes = bytes.unwrap_or(&mix[mix.len() - 1]).0;
        let at = Ps(now as u64);
        waited += (send(at, Bytes(bytes)) - at).0 as f64 - bytes as f64 * PS_PER_BYTE;
    }
    waited / PACKETS as f64
}

fn assert_near(found: f64, reference: &Reference) {
    let error = (found - reference.wait_ps).abs() / reference.wait_ps;
    // Tolerance for the estimate's own noise: the relative deviation of the mean wait grows with the load.
    let allowed = 0.01 + 0.04 * reference.load;
    assert!(
        error < allowed,
        "{} at {}: {found:.0} ps, {:.0} expected",
        reference.mix,
        reference.load,
        reference.wait_ps
    );
}

#[test]
fn the_reference_is_what_the_closed_form_gives() {
    for reference in references() {
        let mix = mix(reference.mix);
        let [first, second] = [mean_service(mix, |s| s), mean_service(mix, |s| s * s)];
        let pollaczek_khinchine = reference.load / first * second / (2.0 * (1.0 - reference.load));
        assert!((pollaczek_khinchine - reference.wait_ps).abs() < 0.1, "{pollaczek_khinchine}");
    }
}

#[test]
fn a_link_under_poisson_arrivals_makes_packets_wait_as_long_as_theory_says() {
    for reference in references() {
        let mut link = Link::new(LinkConfig { rate: RATE, latency: Ps::ZERO });
        let found = mean_wait(mix(reference.mix), reference.load, |now, bytes| {
            link.send(now, Traffic::Data { grains: 1 }, bytes)
        });
        assert_near(found, &reference);
    }
}

#[test]
fn a_way_out_of_a_switch_fed_by_three_ports_waits_as_long_as_theory_says() {
    for reference in references() {
        let crossing = Ps::from_ns(30);
        // Waits are complete flits, so the smallest flits give the best resolution.
        let mut switch = Switch::new(SwitchConfig { ports: 4, rate: RATE, flit: Bytes(1), crossing });
        let mut packet = 0_u8;
        let found = mean_wait(mix(reference.mix), reference.load, |now, bytes| {
            packet = (packet + 1) % 3;
            switch.forward(now, now, (GpuId(packet), GpuId(3)), Traffic::Data { grains: 1 }, bytes) - crossing
        });
        assert_near(found, &reference);
    }
}

#[test]
fn a_link_under_regular_arrivals_never_waits_below_its_rate_and_falls_behind_above() {
    let send = |gap: u64| {
        let mut link = Link::new(LinkConfig { rate: RATE, latency: Ps::ZERO });
        (0..1000_u64)
            .map(|packet| (link.send(Ps(packet * gap), Traffic::Data { grains: 1 }, Bytes(160)) - Ps(packet * gap)).0)
            .max()
    };
    assert_eq!(send(1600), Some(1600), "at its rate");
    assert_eq!(send(1500), Some(1600 + 999 * 100), "each packet 100 ps further behind");
}
