//! Where lines live: modules, GPUs, homes.

use tombolo_types::{GpuId, Line, ModuleId};

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

/// A set of modules: bit `i` is module `i` of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleSet(pub u32);

impl FromIterator<ModuleId> for ModuleSet {
    fn from_iter<I: IntoIterator<Item = ModuleId>>(modules: I) -> ModuleSet {
        modules.into_iter().fold(ModuleSet::NONE, |all, module| all.and(ModuleSet::only(module)))
    }
}

impl ModuleSet {
    /// No module.
    pub const NONE: ModuleSet = ModuleSet(0);
    /// Modules that a set can tell apart.
    pub const MOST: usize = 32;

    /// Modules 0 to `modules - 1`.
    pub fn first(modules: u8) -> ModuleSet {
        ModuleSet(((1_u64 << modules) - 1) as u32)
    }

    /// Only this one.
    pub fn only(module: ModuleId) -> ModuleSet {
        ModuleSet(1 << module.0)
    }

    /// Whether it holds `module`.
    pub fn contains(self, module: ModuleId) -> bool {
        module.0 < 32 && self.0 & ModuleSet::only(module).0 != 0
    }

    /// The modules of either.
    pub fn and(self, other: ModuleSet) -> ModuleSet {
        ModuleSet(self.0 | other.0)
    }

    /// Its modules without those of `other`.
    pub fn without(self, other: ModuleSet) -> ModuleSet {
        ModuleSet(self.0 & !other.0)
    }

    /// How many modules are in it.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The one with the least number.
    pub fn lowest(self) -> Option<ModuleId> {
        (self != ModuleSet::NONE).then(|| ModuleId(self.0.trailing_zeros() as u8))
    }

    /// Every module of the GPUs that have one in it.
    pub fn with_gpus(self, topology: &impl Topology) -> ModuleSet {
        let modules = || (0..topology.modules()).map(ModuleId);
        let gpus: Vec<GpuId> =
            modules().filter(|&module| self.contains(module)).map(|module| topology.gpu_of(module)).collect();
        let with = modules().filter(|&module| gpus.contains(&topology.gpu_of(module)));
        with.fold(ModuleSet::NONE, |set, module| set.and(ModuleSet::only(module)))
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
