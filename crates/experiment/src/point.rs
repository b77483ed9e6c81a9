//! A point: a machine, a design and a workload, with the key used to store its result.

use crate::error::PointError;
use crate::point_result::Pass;
use crate::workload::{Target, WorkloadChoice, executable_hash};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;

/// Hash over the sources that decide a point's result. Changes automatically with any of the sources.
pub const MODEL_VERSION: &str = env!("TOMBOLO_MODEL_VERSION");

/// Name of a result: a hash over everything that decides the result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that decides a result. Names and descriptions of machine and design are excluded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Equal to [`MODEL_VERSION`].
    pub model: String,
    /// Pass over the point.
    pub pass: Pass,
    /// The scaled machine, with every value resolved.
    pub machine: ConfigJson,
    /// The design, with every value resolved.
    pub design: ConfigJson,
    /// Workload name.
    pub workload: String,
    /// All parameters in order, explicit or default; a file is represented by a hash over its contents.
    pub parameters: Vec<(String, String)>,
    /// Scale of the input.
    pub scale: String,
    /// Seed of the input.
    pub seed: u64,
    /// True if only a launch sample runs, provided sampling applies.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sampled: bool,
}

/// Lets serialisation skip the flag, which keeps the keys of unsampled points unchanged.
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Identity {
    /// Returns the key for this identity.
    pub fn key(&self) -> Key {
        let text = serde_json::to_vec(self).expect("its keys are strings");
        Key(blake3::hash(&text).to_hex().to_string())
    }
}

/// JSON of a machine or a design without `name` and `description`: all that decides results. Copies share the JSON.
#[derive(Clone, Debug)]
pub struct ConfigJson(Arc<RawValue>);

impl ConfigJson {
    fn of(described: &impl Serialize) -> ConfigJson {
        let mut value = serde_json::to_value(described).expect("its keys are strings");
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|key, _| key != "name" && key != "description");
        }
        ConfigJson(serde_json::value::to_raw_value(&value).expect("its keys are strings").into())
    }
}

impl Serialize for ConfigJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ConfigJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ConfigJson, D::Error> {
        Ok(ConfigJson(Box::<RawValue>::deserialize(deserializer)?.into()))
    }
}

/// A checked machine or design with the JSON of its values. Points with the same machine share the machine and the JSON;
/// likewise for designs.
#[derive(Debug)]
pub struct SharedConfig<T> {
    /// The machine or the design.
    pub value: Arc<T>,
    json: ConfigJson,
}

impl<T> Clone for SharedConfig<T> {
    fn clone(&self) -> SharedConfig<T> {
        SharedConfig { value: Arc::clone(&self.value), json: self.json.clone() }
    }
}

impl<T: Serialize> From<Arc<T>> for SharedConfig<T> {
    fn from(value: Arc<T>) -> SharedConfig<T> {
        SharedConfig { json: ConfigJson::of(&*value), value }
    }
}

/// A machine, a design and a workload.
#[derive(Clone)]
pub struct Point {
    /// The scaled machine.
    pub machine: Arc<MachineConfig>,
    /// The design.
    pub design: Arc<DesignConfig>,
    /// The workload, with its parameters and seed.
    pub workload: Arc<WorkloadChoice>,
    /// Pass over the point.
    pub pass: Pass,
    /// Settings applied to machine and design, for people.
    pub settings: Vec<String>,
    identity: Arc<Identity>,
    key: Key,
}

impl Point {
    /// Creates a point; the input has the scale of the machine.
    ///
    /// # Errors
    /// Returns an error if the workload does not accept its parameters, or if a parameter names an unreadable file.
    pub fn new(
        machine: impl Into<SharedConfig<MachineConfig>>,
        design: impl Into<SharedConfig<DesignConfig>>,
        workload: Arc<WorkloadChoice>,
        pass: Pass,
        settings: Vec<String>,
    ) -> Result<Point, PointError> {
        let SharedConfig { value: machine, json: machine_json } = machine.into();
        let SharedConfig { value: design, json: design_json } = design.into();
        let mut parameters = workload.parameters()?;
        // A registered protocol may change without a change of its name: the executable identifies the protocol.
        if design.coherence.is_registered() {
            parameters.push(("protocol", executable_hash()?));
        }
        let identity = Identity {
            model: MODEL_VERSION.to_owned(),
            pass,
            machine: machine_json,
            design: design_json,
            workload: workload.name().to_owned(),
            parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            scale: machine.scale.to_string(),
            seed: workload.seed,
            sampled: false,
        };
        let key = identity.key();
        Ok(Point { machine, design, workload, pass, settings, identity: Arc::new(identity), key })
    }

    /// Returns the point with a sampled simulation, provided sampling applies. Different passes are unchanged, because
    /// they walk all streams.
    #[must_use]
    pub fn sampled(self) -> Point {
        if self.pass != Pass::Simulation {
            return self;
        }
        let identity = Identity { sampled: true, ..(*self.identity).clone() };
        Point { key: identity.key(), identity: Arc::new(identity), ..self }
    }

    /// True if only a launch sample runs, provided sampling applies.
    pub fn is_sampled(&self) -> bool {
        self.identity.sampled
    }

    /// Returns the key for the point's result.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the identity that decides the result.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the target that the workload is recorded for.
    pub fn target(&self) -> Target {
        Target::of(&self.machine)
    }

    /// Returns the recording's name. Points with equal names share a recording.
    pub fn recording(&self) -> String {
        let Identity { workload, parameters, scale, seed, .. } = &*self.identity;
        let parameters: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (line, width) = (self.machine.line.bytes(), self.machine.sm.warp_width);
        let cut = if self.workload.partitioned_by_gpus() {
            format!(", {} GPUs", self.machine.topology.gpus)
        } else {
            String::new()
        };
        format!("{workload},{} at {scale}, seed {seed}, lines of {line} B, {width} lanes{cut}", parameters.join(","))
    }

    /// Returns the name used to record run times: the recording, the machine and the design.
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

    /// Returns a label for people.
    pub fn label(&self) -> String {
        let mut label = format!("{} on {} under {}", self.workload.label, self.machine.name, self.design.name);
        if !self.settings.is_empty() {
            label.push_str(&format!(" with {}", self.settings.join(", ")));
        }
        label
    }
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
