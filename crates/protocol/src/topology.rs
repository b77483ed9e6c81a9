//! Where lines live: modules, GPUs, homes.

pub use tombolo_types::ModuleSet;
use tombolo_types::{GpuId, GpuSet, Line, ModuleId};

/// The shape of the machine and the homes of its lines, as the host knows them.
pub trait Topology {
    /// GPUs of the machine.
    fn gpus(&self) -> u8;

    /// Modules of each GPU.
    fn modules_per_gpu(&self) -> u8;

    /// The module whose memory holds the line, as module `at` sees it. Who is asked there sees itself.
    fn home(&self, at: ModuleId, line: Line) -> ModuleId;

    /// The module of `gpu` that stands for a line of another GPU inside `gpu`. Equal for all lines of a
    /// directory region: an entry of several lines needs one home.
    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId;

    /// The GPU of a module.
    fn gpu_of(&self, module: ModuleId) -> GpuId {
        GpuId(module.0 / self.modules_per_gpu())
    }

    /// All modules of the machine.
    fn modules(&self) -> u8 {
        self.gpus() * self.modules_per_gpu()
    }

    /// Every module of the GPUs that have one in `modules`.
    fn whole_gpus(&self, modules: ModuleSet) -> ModuleSet {
        let gpus: GpuSet = modules.iter().map(|module| self.gpu_of(module)).collect();
        (0..self.modules()).map(ModuleId).filter(|&module| gpus.contains(self.gpu_of(module))).collect()
    }

    /// The home of `line` inside `gpu`, as module `at` sees it: the system home where it lies in `gpu`.
    fn gpu_home(&self, at: ModuleId, gpu: GpuId, line: Line) -> ModuleId {
        let system = self.home(at, line);
        if self.gpu_of(system) == gpu { system } else { self.remote_gpu_home(gpu, line) }
    }

    /// The homes of `line` as module `at` sees them.
    fn homes(&self, at: ModuleId, line: Line) -> Homes {
        let system = self.home(at, line);
        let gpu = self.gpu_of(at);
        let gpu_home = if self.gpu_of(system) == gpu { system } else { self.remote_gpu_home(gpu, line) };
        Homes { system, gpu: gpu_home }
    }
}

/// The homes of one line, as one module sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Homes {
    /// The module whose memory holds the line.
    pub system: ModuleId,
    /// The module of the observer's own GPU that stands for it; the system home where that is in this GPU.
    pub gpu: ModuleId,
}

impl Homes {
    /// The next level up from module `at`, which sees these; `None` at the system home, where memory is next.
    /// `hierarchical`: whether requests go by the GPU home.
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

/// Which lines of one L2 a bulk invalidation means, by where they are homed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The system home is this module.
    Own,
    /// Of another GPU, and this module is the GPU home.
    GpuHome,
    /// The system home is another module of this GPU.
    GpuRemote,
    /// Of another GPU, and another module is the GPU home.
    SystemRemote,
}

impl Class {
    /// All classes, in the order of their discriminants.
    pub const ALL: [Class; 4] = [Class::Own, Class::GpuHome, Class::GpuRemote, Class::SystemRemote];

    /// The class that a line with these homes has in the L2 of `at`.
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
    /// No line.
    pub const NONE: ClassSet = ClassSet(0);
    /// Every line.
    pub const ALL: ClassSet = ClassSet(0b1111);
    /// Lines whose memory is not this module's.
    pub const NOT_OWN: ClassSet = ClassSet(0b1110);
    /// Lines for which another module of this GPU is the GPU home.
    pub const NOT_GPU_HOME: ClassSet = ClassSet(0b1100);

    /// Lines of other GPUs for which this module is the GPU home.
    pub const GPU_HOME: ClassSet = ClassSet(0b0010);

    /// Whether it names `class`.
    pub fn contains(self, class: Class) -> bool {
        self.0 & (1 << class as u8) != 0
    }
}
