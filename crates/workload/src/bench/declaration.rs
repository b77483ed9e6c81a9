//! The declaration of a program: name, parameters and arrays, told once.

/// Declares a program: its name, its parameters, and the struct with its arrays.
///
/// ```
/// use tombolo_workload::prelude::*;
///
/// program! {
///     /// multiplies an array by a factor
///     static SCALE = "scale", "assumed";
///     properties: data_independent;
///     parameters {
///         /// elements of an array of 4-byte floats, at scale 1
///         elements: count(1..=1 << 30) = 65_536, "assumed";
///         /// the factor
///         factor: count(1..=9) = 2, "assumed";
///     }
///     lay_out(_, request, memory) {
///         let elements = request.scale.of(elements);
///     }
///     struct Scale {
///         x: Array<f32>[elements],
///         factor: f32 = factor as f32,
///     }
/// }
///
/// impl Instance for Scale {
///     fn fill(&self, memory: &Memory) {
///         memory.fill(self.x, |index| index as f32);
///     }
///
///     fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
///         host.copy_to_device(self.x);
///         host.launch(Grid::new("scale", self.x.len().div_ceil(256), 256), |cta| {
///             cta.each_warp(|warp| {
///                 let i = warp.global_thread();
///                 warp.when(i.lt(self.x.len() as i32), |warp| {
///                     let product = warp.load(self.x, i) * self.factor;
///                     let product = warp.compute(ComputeClass::Fp32, 1, product);
///                     warp.store(self.x, i, product);
///                 });
///             });
///         })?;
///         host.copy_to_host(self.x);
///         Ok(())
///     }
///
///     fn verify(&self, memory: &Memory) -> Result<(), String> {
///         let expected = (0..self.x.len()).map(|index| index as f32 * self.factor);
///         compare("x", memory.to_vec(self.x), expected, 0.0)
///     }
/// }
///
/// assert_eq!((SCALE.name(), SCALE.parameters().len()), ("scale", 2));
/// ```
///
/// **Head.** A description for lists in the form of a doc comment, the static, the name on the command line, and the source
/// of the program's shape. The static is a [`Benchmark`](crate::bench::Benchmark). The
/// [`Properties`](crate::bench::Properties) that hold can follow.
///
/// **Parameters.** See [`parameters!`](crate::parameters) for their form. A constant of type
/// [`Parameter`](crate::parameter::Parameter) can stand in place of a declaration, also with another default or source.
/// `parameters` can be left out.
///
/// **Sizes.** `lay_out` names its arguments: the program's name, the [`Request`](crate::bench::Request) and the
/// [`Memory`](crate::simt::Memory). Each parameter declared here is a variable in its statements and in the fields: a
/// count or one of several numbers is a `u64`, a choice a `&'static str`, a flag a `bool`. A statement can leave with an
/// error by `?`.
///
/// **Fields.** They are set in their order, which is also the order of the arrays in memory:
///
/// | field | value |
/// | --- | --- |
/// | `x: Array<f32>[len]` | an array named `x` that follows the scale: [`Scaling::Scales`](crate::simt::Scaling::Scales) |
/// | `x: Array<f32>[len, fixed]` | an array whose size does not follow the scale |
/// | `x: Array<f32>[len, root]` | an array that follows the root of the scale |
/// | `x: Array<f32>[len, scaling]` | an array with the scaling in a variable |
/// | `x: Array<f32>["name"; len]` | an array with another name |
/// | `x: [Array<f32>; 2]["x0", "x1"; len]` | arrays of equal lengths |
/// | `x: T = value` | the value |
/// | `x: T` | the variable `x`; a `u64` becomes another integer: see [`FieldValue`](crate::bench::FieldValue) |
/// | `x, y: …` | fields that are declared alike |
///
/// The struct gets a function `lay_out` that builds it. A program whose struct is built elsewhere has `lay_out: function;` instead: see [`LayOut`](crate::bench::LayOut). It
/// can take a table that programs share by `parameters: &TABLE;`. Arrays that programs share, or that have a life of
/// their own, are declared by [`arrays!`](crate::arrays).
#[macro_export]
macro_rules! program {
    (
        $(#[doc = $about:literal])+
        $visibility:vis static $NAME:ident = $name:literal, $source:expr;
        $(properties: $($property:ident),+;)?
        $(parameters { $($parameters:tt)* })?
        $(parameters: $table:expr;)?
        lay_out($workload:pat_param, $request:ident, $memory:ident) { $($statement:tt)* }
        $(#[$attribute:meta])*
        $struct_visibility:vis struct $Struct:ident { $($field:tt)* }
    ) => {
        $crate::program! {
            $(#[doc = $about])+
            $visibility static $NAME = $name, $source;
            $(properties: $($property),+;)?
            $(parameters { $($parameters)* })?
            $(parameters: $table;)?
            lay_out: |workload, request, memory| Ok(Box::new($Struct::lay_out(workload, request, memory)?));
        }

        $crate::__fields! { definition { $(#[$attribute])* $struct_visibility struct $Struct } [] $($field)* }

        impl $Struct {
            /// Adds the arrays to a memory.
            $struct_visibility fn lay_out(
                $workload: &'static str,
                $request: &mut $crate::bench::Request,
                $memory: &mut $crate::simt::Memory,
            ) -> Result<$Struct, $crate::bench::WorkloadError> {
                $($crate::__variables! { $request $($parameters)* })?
                $($statement)*
                Ok($crate::__fields! { literal { $Struct $memory } [] $($field)* })
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        $visibility:vis static $NAME:ident = $name:literal, $source:expr;
        $(properties: $($property:ident),+;)?
        $(parameters { $($parameters:tt)* })?
        lay_out: $lay_out:expr;
    ) => {
        $crate::program! {
            $(#[doc = $about])+
            $visibility static $NAME = $name, $source;
            $(properties: $($property),+;)?
            parameters: &$crate::parameters![$($($parameters)*)?];
            lay_out: $lay_out;
        }
    };
    (
        $(#[doc = $about:literal])+
        $visibility:vis static $NAME:ident = $name:literal, $source:expr;
        $(properties: $($property:ident),+;)?
        parameters: $parameters:expr;
        lay_out: $lay_out:expr;
    ) => {
        $(#[doc = $about])+
        $visibility static $NAME: $crate::bench::Benchmark = $crate::bench::Benchmark {
            name: $name,
            about: $crate::parameter::help_text(concat!($($about),+)),
            source: $source,
            parameters: $parameters,
            properties: $crate::bench::Properties { $($($property: true,)+)? ..$crate::bench::Properties::NONE },
            lay_out: $lay_out,
        };
    };
}

/// Declares arrays that a program, or several programs, keep together: a struct, and a function `lay_out` that adds the
/// arrays to a memory.
///
/// The struct's name is followed by the function's arguments: the memory, and what the sizes depend on. The fields have the
/// forms that [`program!`](crate::program) describes.
/// ```
/// use tombolo_workload::prelude::*;
///
/// arrays! {
///     /// Nodes of a graph, and the first arc of each.
///     struct Rows(memory, nodes: u64, scaling: Scaling) {
///         first: Array<u32>[nodes + 1, scaling],
///         degree, level: Array<u32>[nodes, scaling],
///         count: Array<u32>[1, fixed],
///     }
/// }
///
/// let mut memory = Memory::new(Backing::AddressOnly);
/// let rows = Rows::lay_out(&mut memory, 10, Scaling::Scales);
/// assert_eq!((rows.first.len(), rows.degree.len(), rows.level.len(), rows.count.len()), (11, 10, 10, 1));
/// ```
///
/// With statements before the struct, which can leave with a [`WorkloadError`](crate::bench::WorkloadError) by `?`, the
/// function returns a result:
/// ```
/// use tombolo_workload::prelude::*;
///
/// arrays! {
///     lay_out(memory, workload: &'static str, side: u64) {
///         check_indices(workload, side * side, "elements")?;
///     }
///     /// A square matrix.
///     struct Matrix {
///         elements: Array<f32>[side * side],
///         side: i32,
///     }
/// }
///
/// let mut memory = Memory::new(Backing::AddressOnly);
/// assert!(Matrix::lay_out(&mut memory, "example", 1 << 16).is_err());
/// assert_eq!(Matrix::lay_out(&mut memory, "example", 4).unwrap().elements.len(), 16);
/// ```
#[macro_export]
macro_rules! arrays {
    (
        $(#[$about:meta])*
        $visibility:vis struct $Struct:ident($memory:ident $(, $argument:ident : $type:ty)*) { $($field:tt)* }
    ) => {
        $crate::__fields! { definition { $(#[$about])* $visibility struct $Struct } [] $($field)* }

        impl $Struct {
            /// Adds the arrays to a memory.
            $visibility fn lay_out($memory: &mut $crate::simt::Memory $(, $argument: $type)*) -> $Struct {
                $crate::__fields! { literal { $Struct $memory } [] $($field)* }
            }
        }
    };
    (
        lay_out($memory:ident $(, $argument:ident : $type:ty)*) { $($statement:tt)* }
        $(#[$about:meta])*
        $visibility:vis struct $Struct:ident { $($field:tt)* }
    ) => {
        $crate::__fields! { definition { $(#[$about])* $visibility struct $Struct } [] $($field)* }

        impl $Struct {
            /// Adds the arrays to a memory.
            $visibility fn lay_out(
                $memory: &mut $crate::simt::Memory $(, $argument: $type)*
            ) -> Result<$Struct, $crate::bench::WorkloadError> {
                $($statement)*
                Ok($crate::__fields! { literal { $Struct $memory } [] $($field)* })
            }
        }
    };
}

/// The fields of a program's struct, one after the other: its definition, or the expression that builds it.
#[doc(hidden)]
#[macro_export]
macro_rules! __fields {
    (definition { $($head:tt)* } [$($done:tt)*]) => {
        $($head)* { $($done)* }
    };
    (literal { $Struct:ident $memory:ident } [$($done:tt)*]) => {
        $Struct { $($done)* }
    };
    // Fields that are declared alike.
    (
        $form:ident { $($head:tt)* } [$($done:tt)*]
        $(#[$about:meta])* $visibility:vis $first:ident, $($other:ident),+ : $type:ty $([ $($array:tt)* ])? $(= $value:expr)?
        $(, $($rest:tt)*)?
    ) => {
        $crate::__fields! {
            $form { $($head)* } [$($done)*]
            $(#[$about])* $visibility $first: $type $([ $($array)* ])? $(= $value)?,
            $visibility $($other),+ : $type $([ $($array)* ])? $(= $value)?
            $(, $($rest)*)?
        }
    };
    (
        definition { $($head:tt)* } [$($done:tt)*]
        $(#[$about:meta])* $visibility:vis $field:ident : $type:ty $([ $($array:tt)* ])? $(= $value:expr)?
        $(, $($rest:tt)*)?
    ) => {
        $crate::__fields! {
            definition { $($head)* } [$($done)* $(#[$about])* $visibility $field: $type,] $($($rest)*)?
        }
    };
    (
        literal { $Struct:ident $memory:ident } [$($done:tt)*]
        $(#[$about:meta])* $visibility:vis $field:ident : $type:ty $([ $($array:tt)* ])? $(= $value:expr)?
        $(, $($rest:tt)*)?
    ) => {
        $crate::__fields! {
            literal { $Struct $memory }
            [$($done)* $field: $crate::__field!($memory $field $([ $($array)* ])? $(= $value)?),]
            $($($rest)*)?
        }
    };
}

/// An array of parameters, or constants for parameters that programs share.
///
/// A declaration has a help text in the form of a doc comment, a name, the allowed values, a default and the default's
/// source. A constant stands for itself: `NODES;` as it is, `NODES, source;` and `NODES = default, source;` with changes.
/// ```
/// use tombolo_workload::parameter::Parameter;
/// use tombolo_workload::parameters;
///
/// parameters! {
///     /// scope of atomics
///     pub const SCOPE = scope: choice("gpu", "sys") = "gpu", "assumed";
/// }
///
/// static PARAMETERS: [Parameter; 5] = parameters![
///     /// elements of an array of 4-byte floats, at scale 1
///     elements: count(1..=1 << 30) = 65_536, "assumed";
///     /// threads of a CTA
///     threads: one_of(128, 256) = 256, "assumed";
///     /// rows padded to whole lines
///     padded: flag = "no", "assumed";
///     /// file with a graph
///     graph: file, "none";
///     SCOPE = "sys", "assumed: that of the barrier";
/// ];
///
/// assert_eq!((PARAMETERS[0].name, PARAMETERS[0].default), ("elements", "65536"));
/// ```
///
/// A default that is not allowed does not compile:
/// ```compile_fail
/// use tombolo_workload::parameter::Parameter;
///
/// static PARAMETERS: [Parameter; 1] = tombolo_workload::parameters![
///     /// elements of an array
///     elements: count(1..=100) = 101, "assumed";
/// ];
/// ```
#[macro_export]
macro_rules! parameters {
    ($(
        $(#[doc = $about:literal])+
        $visibility:vis const $NAME:ident =
            $name:ident : $kind:ident $(($($allowed:tt)*))? $(= $default:literal)?, $source:expr;
    )+) => {
        $(
            #[doc = concat!("Parameter `", stringify!($name), "`:")]
            $(#[doc = $about])+
            $visibility const $NAME: $crate::parameter::Parameter = $crate::__parameter! {
                $(#[doc = $about])+ $name : $kind $(($($allowed)*))? $(= $default)?, $source
            };
        )+
    };
    ($(
        $(#[doc = $about:literal])*
        $name:ident $(: $kind:ident $(($($allowed:tt)*))?)? $(= $default:literal)? $(, $source:expr)?;
    )*) => {
        [$(
            $crate::__parameter! {
                $(#[doc = $about])* $name $(: $kind $(($($allowed)*))?)? $(= $default)? $(, $source)?
            }
        ),*]
    };
}

/// A declared parameter, or a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! __parameter {
    ($constant:ident) => {
        $constant
    };
    ($constant:ident, $source:expr) => {
        $crate::parameter::Parameter { source: $source, ..$constant }
    };
    ($constant:ident = $default:literal, $source:expr) => {
        const { $crate::parameter::Parameter { default: concat!($default), source: $source, ..$constant }.checked() }
    };
    ($(#[doc = $about:literal])+ $name:ident : count($range:expr) = $default:literal, $source:expr) => {
        const {
            $crate::parameter::Parameter::count(
                stringify!($name),
                $range,
                concat!($default),
                $crate::parameter::help_text(concat!($($about),+)),
                $source,
            )
        }
    };
    ($(#[doc = $about:literal])+ $name:ident : choice($($word:literal),+) = $default:literal, $source:expr) => {
        const {
            $crate::parameter::Parameter::choice(
                stringify!($name),
                &[$(concat!($word)),+],
                concat!($default),
                $crate::parameter::help_text(concat!($($about),+)),
                $source,
            )
        }
    };
    ($(#[doc = $about:literal])+ $name:ident : one_of($($number:literal),+) = $default:literal, $source:expr) => {
        $crate::__parameter! {
            $(#[doc = $about])+ $name : choice($($number),+) = $default, $source
        }
    };
    ($(#[doc = $about:literal])+ $name:ident : flag = $default:literal, $source:expr) => {
        const {
            $crate::parameter::Parameter::flag(
                stringify!($name),
                $default,
                $crate::parameter::help_text(concat!($($about),+)),
                $source,
            )
        }
    };
    ($(#[doc = $about:literal])+ $name:ident : file, $source:expr) => {
        $crate::parameter::Parameter::file(
            stringify!($name),
            $crate::parameter::help_text(concat!($($about),+)),
            $source,
        )
    };
    ($(#[doc = $about:literal])* $name:ident $($rest:tt)*) => {
        compile_error!(concat!(
            "the parameter `",
            stringify!($name),
            "` needs a help text (`/// …`) and one of these forms: `name: count(low..=high) = default, source;`, \
             `name: one_of(number, number) = default, source;`, `name: choice(\"word\", \"word\") = \"default\", source;`, `name: flag = \"no\", source;`, `name: file, source;`"
        ))
    };
}

/// Variables with the values of the parameters declared by a program.
#[doc(hidden)]
#[macro_export]
macro_rules! __variables {
    ($request:ident $(
        $(#[doc = $about:literal])*
        $name:ident $(: $kind:ident $(($($allowed:tt)*))?)? $(= $default:literal)? $(, $source:expr)?;
    )*) => {
        $($crate::__variable! { $request $name $($kind)? })*
    };
}

/// Variable with the value of a parameter; none for a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! __variable {
    ($request:ident $name:ident count) => {
        #[allow(unused_variables)]
        let $name = $request.values.count(stringify!($name));
    };
    ($request:ident $name:ident one_of) => {
        $crate::__variable! { $request $name count }
    };
    ($request:ident $name:ident choice) => {
        #[allow(unused_variables)]
        let $name = $request.values.choice(stringify!($name));
    };
    ($request:ident $name:ident flag) => {
        #[allow(unused_variables)]
        let $name = $request.values.flag(stringify!($name));
    };
    ($request:ident $name:ident $($other:ident)?) => {};
}

/// The value of a field in a program's struct.
#[doc(hidden)]
#[macro_export]
macro_rules! __field {
    ($memory:ident $field:ident) => {
        $crate::bench::FieldValue::field_value($field)
    };
    ($memory:ident $field:ident = $value:expr) => {
        $value
    };
    ($memory:ident $field:ident [$name:literal; $($len:tt)+]) => {
        $crate::__array!($memory $name, $($len)+)
    };
    ($memory:ident $field:ident [$($name:literal),+; $len:expr]) => {
        $crate::__field!($memory $field [$($name),+; $len, $crate::simt::Scaling::Scales])
    };
    ($memory:ident $field:ident [$($name:literal),+; $len:expr, fixed]) => {
        $crate::__field!($memory $field [$($name),+; $len, $crate::simt::Scaling::Fixed])
    };
    ($memory:ident $field:ident [$($name:literal),+; $len:expr, root]) => {
        $crate::__field!($memory $field [$($name),+; $len, $crate::simt::Scaling::Root])
    };
    ($memory:ident $field:ident [$($name:literal),+; $len:expr, $scaling:expr]) => {
        [$($name),+].map(|name| $memory.array(name, $len, $scaling))
    };
    ($memory:ident $field:ident [$($len:tt)+]) => {
        $crate::__array!($memory stringify!($field), $($len)+)
    };
}

/// An array added to a memory.
#[doc(hidden)]
#[macro_export]
macro_rules! __array {
    ($memory:ident $name:expr, $len:expr) => {
        $memory.array($name, $len, $crate::simt::Scaling::Scales)
    };
    ($memory:ident $name:expr, $len:expr, fixed) => {
        $memory.array($name, $len, $crate::simt::Scaling::Fixed)
    };
    ($memory:ident $name:expr, $len:expr, root) => {
        $memory.array($name, $len, $crate::simt::Scaling::Root)
    };
    ($memory:ident $name:expr, $len:expr, $scaling:expr) => {
        $memory.array($name, $len, $scaling)
    };
}
