//! Line placement: modules, GPUs, homes.

pub use tombolo_types::ModuleSet;
use tombolo_types::{GpuId, GpuSet, Line, ModuleId};

/// The machine's shape and its lines' homes, as known to the host.
pub trait Topology {
    /// Number of GPUs in the machine.
    fn gpus(&self) -> u8;

    /// Number of modules per GPU.
    fn modules_per_gpu(&self) -> u8;

    /// The module whose memory holds the line, as seen by module `at`. The home itself always sees itself.
    fn home(&self, at: ModuleId, line: Line) -> ModuleId;

    /// The module that represents another GPU's line inside `gpu`. The result is equal for all lines in a directory
    /// region, because an entry that covers several lines needs a single home.
    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId;

    /// The module's GPU.
    fn gpu_of(&self, module: ModuleId) -> GpuId {
        GpuId(module.0 / self.modules_per_gpu())
    }

    /// Number of modules in the machine.
    fn modules(&self) -> u8 {
        self.gpus() * self.modules_per_gpu()
    }

    /// All modules on each GPU that has a module in `modules`.
    fn whole_gpus(&self, modules: ModuleSet) -> ModuleSet {
        let gpus: GpuSet = modules.iter().map(|module| self.gpu_of(module)).collect();
        (0..self.modules()).map(ModuleId).filter(|&module| gpus.contains(self.gpu_of(module))).collect()
    }

    /// The home for `line` inside `gpu`, as seen by module `at`: the system home if it lies in `gpu`.
    fn gpu_home(&self, at: ModuleId, gpu: GpuId, line: Line) -> ModuleId {
        let system = self.home(at, line);
        if self.gpu_of(system) == gpu { system } else { self.remote_gpu_home(gpu, line) }
    }

    /// The homes for `line` as seen by module `at`.
    fn homes(&self, at: ModuleId, line: Line) -> Homes {
        let system = self.home(at, line);
        let gpu = self.gpu_of(at);
        let gpu_home = if self.gpu_of(system) == gpu { system } else { self.remote_gpu_home(gpu, line) };
        Homes { system, gpu: gpu_home }
    }
}

/// A line's homes, as seen by a given module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Homes {
    /// The module whose memory holds the line.
    pub system: ModuleId,
    /// The representative module in the observer's own GPU; equal to the system home if that lies in this GPU.
    pub gpu: ModuleId,
}

impl Homes {
    /// The next level up from module `at`, which sees these homes; `None` at the system home, because memory is
    /// next. `hierarchical`: set if requests route through the GPU home.
    pub fn next(self, at: ModuleId, hierarchical: bool) -> Option<ModuleId> {
        if at == self.system {
            None
        } else if hierarchical && at != self.gpu {
            Some(self.gpu)
        } else {
            Some(self.system)
        }
    }
}

/// Line classes by home location, used to select lines for bulk invalidation in an L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The system home is this module.
    Own,
    /// The line belongs to another GPU, and this module is the GPU home.
    GpuHome,
    /// The system home is another module in this GPU.
    GpuRemote,
    /// The line belongs to another GPU, and another module is the GPU home.
    SystemRemote,
}

impl Class {
    /// All classes, in discriminant order.
    pub const ALL: [Class; 4] = [Class::Own, Class::GpuHome, Class::GpuRemote, Class::SystemRemote];

    /// The class assigned by module `at`'s L2 to a line with these homes.
    pub fn of(topology: &impl Topology, at: ModuleId, homes: Homes) -> Class {
        if homes.system == at {
            Class::Own
        } else if homes.gpu == at {
            Class::GpuHome
        } else if topology.gpu_of(homes.system) == topology.gpu_of(at) {
            Class::GpuRemote
        } else {
            Class::SystemRemote
        }
    }
}

/// A set of [`Class`]es: bit `i` is the class with discriminant `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassSet(pub u8);

impl ClassSet {
    /// The empty set: no line.
    pub const NONE: ClassSet = ClassSet(0);
    /// Every line.
    pub const ALL: ClassSet = ClassSet(0b1111);
    /// Lines whose memory belongs to another module.
    pub const NOT_OWN: ClassSet = ClassSet(0b1110);
    /// Lines whose GPU home is another module in this GPU.
    pub const NOT_GPU_HOME: ClassSet = ClassSet(0b1100);

    /// Lines from other GPUs whose GPU home is this module.
    pub const GPU_HOME: ClassSet = ClassSet(0b0010);

    /// True if the set contains `class`.
    pub fn contains(self, class: Class) -> bool {
        self.0 & (1 << class as u8) != 0
    }
}
