//! A point: one machine, one design, one workload, and the key under which its result is kept.

use crate::error::PointError;
use crate::point_result::Pass;
use crate::workload::{Target, WorkloadChoice};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;

/// Hash of the sources that decide what a point gives. Changes with any of them, by itself.
pub const MODEL_VERSION: &str = env!("TOMBOLO_MODEL_VERSION");

/// Name of a result: a hash of everything that decides it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that decides a result. Names and descriptions of machine and design decide none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// [`MODEL_VERSION`].
    pub model: String,
    /// What is done.
    pub pass: Pass,
    /// The machine, scaled, every value resolved.
    pub machine: Value,
    /// The design, every value resolved.
    pub design: Value,
    /// The workload.
    pub workload: String,
    /// All its parameters in order, given or not; of a file, a hash of what it holds.
    pub parameters: Vec<(String, String)>,
    /// Scale of its input.
    pub scale: String,
    /// Seed of its input.
    pub seed: u64,
    /// Whether a sample of its launches runs, where one applies.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sampled: bool,
}

/// A point that nobody samples keeps the key that it had before any could be.
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Identity {
    /// The key of this.
    pub fn key(&self) -> Key {
        let text = serde_json::to_vec(self).expect("its keys are strings");
        Key(blake3::hash(&text).to_hex().to_string())
    }
}

/// One machine, one design, one workload.
#[derive(Clone)]
pub struct Point {
    /// The machine, scaled.
    pub machine: Arc<MachineConfig>,
    /// The design.
    pub design: Arc<DesignConfig>,
    /// The workload, with its parameters and seed.
    pub workload: Arc<WorkloadChoice>,
    /// What is done.
    pub pass: Pass,
    /// What was set on machine and design, for people.
    pub settings: Vec<String>,
    identity: Arc<Identity>,
    key: Key,
}

impl Point {
    /// A point; the input is scaled as the machine is.
    ///
    /// # Errors
    /// The workload does not take its parameters, or one names a file that cannot be read.
    pub fn new(
        machine: Arc<MachineConfig>,
        design: Arc<DesignConfig>,
        workload: Arc<WorkloadChoice>,
        pass: Pass,
        settings: Vec<String>,
    ) -> Result<Point, PointError> {
        let parameters = workload.parameters()?;
        let identity = Identity {
            model: MODEL_VERSION.to_owned(),
            pass,
            machine: nameless(&*machine),
            design: nameless(&*design),
            workload: workload.name().to_owned(),
            parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            scale: machine.scale.to_string(),
            seed: workload.seed,
            sampled: false,
        };
        let key = identity.key();
        Ok(Point { machine, design, workload, pass, settings, identity: Arc::new(identity), key })
    }

    /// The same, whose simulation is of a sample where one applies. Other passes stay: they walk all streams.
    #[must_use]
    pub fn sampled(self) -> Point {
        if self.pass != Pass::Simulation {
            return self;
        }
        let identity = Identity { sampled: true, ..(*self.identity).clone() };
        Point { key: identity.key(), identity: Arc::new(identity), ..self }
    }

    /// Whether a sample of its launches runs, where one applies.
    pub fn is_sampled(&self) -> bool {
        self.identity.sampled
    }

    /// The key of its result.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What decides its result.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// For what its workload is recorded.
    pub fn target(&self) -> Target {
        Target::of(&self.machine)
    }

    /// Name of its recording: points of the same one share it.
    pub fn recording(&self) -> String {
        let Identity { workload, parameters, scale, seed, .. } = &*self.identity;
        let parameters: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (line, width) = (self.machine.line.bytes(), self.machine.sm.warp_width);
        let cut =
            if self.workload.cut_by_gpus() { format!(", {} GPUs", self.machine.topology.gpus) } else { String::new() };
        format!("{workload},{} at {scale}, seed {seed}, lines of {line} B, {width} lanes{cut}", parameters.join(","))
    }

    /// Name of what it costs time for: its recording, on a machine under a design.
    pub(crate) fn run(&self) -> String {
        let mut name = format!("{} on {} under {}", self.recording(), self.machine.name, self.design.name);
        if !self.settings.is_empty() {
            name.push_str(&format!(" with {}", self.settings.join(", ")));
        }
        if self.is_sampled() {
            name.push_str(", sampled");
        }
        name
    }

    /// What it is, for people.
    pub fn label(&self) -> String {
        let mut label = format!("{} on {} under {}", self.workload.label, self.machine.name, self.design.name);
        if !self.settings.is_empty() {
            label.push_str(&format!(" with {}", self.settings.join(", ")));
        }
        label
    }
}

/// A description without what decides nothing.
fn nameless(described: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(described).expect("its keys are strings");
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| key != "name" && key != "description");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::only;

    fn point(workload: &str, settings: &[&str]) -> Point {
        let mut machine = tombolo_machine::machine("hmg-4x4").unwrap();
        let mut designs = [tombolo_design::design("hmg").unwrap()];
        tombolo_design::apply(settings, &mut machine, &mut designs).unwrap();
        let machine = machine.check().unwrap().scaled("1/32".parse().unwrap()).unwrap();
        let design = designs[0].check().unwrap();
        let workload = Arc::new(only(workload).unwrap());
        Point::new(Arc::new(machine), Arc::new(design), workload, Pass::Simulation, Vec::new()).unwrap()
    }

    #[test]
    fn the_key_is_of_what_decides_the_result_and_of_nothing_else() {
        let key = |workload, settings: &[&str]| point(workload, settings).key().clone();
        assert_eq!(key("triad", &[]), key("triad,iterations=10", &[]), "a default given is a default");
        assert_eq!(key("triad", &[]), key("triad", &["gpu_link.rate=100GB/s"]), "as it was");
        assert_eq!(key("bfs", &[]), key("lonestar-bfs", &[]), "an alias is the same program");
        assert_ne!(key("triad", &[]), key("triad", &["gpu_link.rate=200GB/s"]));
        assert_ne!(key("triad", &[]), *point("triad", &[]).sampled().key(), "an estimate is no measurement");
        assert_ne!(key("triad", &[]), key("triad,iterations=9", &[]));
        assert_ne!(key("triad", &[]), key("triad", &["design.coherence.downgrade=true"]));
    }

    #[test]
    fn a_file_counts_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gr");
        let key = |text: &str| {
            std::fs::write(&path, text).unwrap();
            point(&format!("bfs,graph={}", path.display()), &[]).key().clone()
        };
        assert_ne!(key("one"), key("three"), "of another length: times of files tick slowly");
        assert_eq!(key("one"), key("one"));
    }
}
