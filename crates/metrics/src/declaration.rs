//! The macro `metrics!`: one declaration per counter.

/// Declares a record type, and its metrics for the table.
///
/// | declaration of a field | meaning |
/// | --- | --- |
/// | `hits: u64 = "L2 hits", "", "Loads that hit.";` | a counter: label, unit, and description, which is also the doc comment |
/// | `drains: DrainsRecord => [];` | a record with metrics of its own, below the field's path |
/// | `host: ServedRecord => ["the host"];` | the same, with the words for `{0}`, `{1}` and so on in its texts |
/// | `sm: BTreeMap<String, u64> => [] of SmStats;` | a field whose metrics another type declares |
/// | `name: String;` | a field without metrics |
///
/// `pub struct X: Sum` also adds records: `merge` and `and` sum each field.
macro_rules! metrics {
    (
        $(#[$outer:meta])*
        pub struct $Record:ident: Sum { $($body:tt)+ }
    ) => {
        metrics! { $(#[$outer])* pub struct $Record { $($body)+ } }
        metrics! { @sum $Record $($body)+ }
    };
    (
        $(#[$outer:meta])*
        pub struct $Record:ident {
            $(
                $(#[$inner:meta])*
                $field:ident: $Type:ty
                $(= $label:literal, $unit:literal, $about:literal)?
                $(=> [$($word:literal),* $(,)?] $(of $Source:ty)?)?;
            )+
        }
    ) => {
        $(#[$outer])*
        pub struct $Record { $( $(#[doc = $about])? $(#[$inner])* pub $field: $Type, )+ }

        impl $crate::table::Metrics for $Record {
            fn append(at: &$crate::table::Prefix, table: &mut Vec<$crate::table::Metric>) {
                $(
                    $( table.push(at.metric(stringify!($field), [$label, $unit, $about])); )?
                    $( metrics!(@nested $Type $(, $Source)?; at.below(stringify!($field), &[$($word),*]), table); )?
                )+
            }
        }
    };
    (@nested $Type:ty; $prefix:expr, $table:expr) => {
        <$Type as $crate::table::Metrics>::append(&$prefix, $table)
    };
    (@nested $Type:ty, $Source:ty; $prefix:expr, $table:expr) => {
        <$Source as $crate::table::Metrics>::append(&$prefix, $table)
    };
    (
        @sum $Record:ident
        $(
            $(#[$inner:meta])*
            $field:ident: $Type:ty
            $(= $label:literal, $unit:literal, $about:literal)?
            $(=> [$($word:literal),* $(,)?] $(of $Source:ty)?)?;
        )+
    ) => {
        impl $Record {
            /// Adds another record, field by field.
            pub fn merge(&mut self, other: &$Record) {
                $( $crate::table::Sum::add(&mut self.$field, &other.$field); )+
            }

            /// Sum of two records.
            pub fn and(mut self, other: &$Record) -> $Record {
                self.merge(other);
                self
            }
        }

        impl $crate::table::Sum for $Record {
            fn add(&mut self, other: &$Record) {
                self.merge(other);
            }
        }
    };
}

/// Declares counters of a model's components, all whole numbers. The class of a counter decides which digest covers it.
macro_rules! counters {
    (
        $(#[$outer:meta])*
        pub struct $Stats:ident {
            $( $class:ident $field:ident = $label:literal, $unit:literal, $about:literal; )+
        }
    ) => {
        metrics! {
            $(#[$outer])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $Stats: Sum { $( $field: u64 = $label, $unit, $about; )+ }
        }

        impl $Stats {
            fn classes(&self) -> impl Iterator<Item = (DigestClass, &'static str, u64)> + use<> {
                [$( (counters!(@class $class), stringify!($field), self.$field) ),+].into_iter()
            }

            fn of(&self, wanted: DigestClass) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                self.classes().filter(move |(class, ..)| *class == wanted).map(|(_, name, count)| (name, count))
            }

            /// Every counter by name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                self.classes().map(|(_, name, count)| (name, count))
            }

            /// Results from the simulated machine: included in a run's digest.
            pub fn results(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                self.of(DigestClass::Result)
            }

            /// Statistics without influence on decisions: included only in the statistics digest.
            pub fn statistics(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                self.of(DigestClass::Statistic)
            }
        }
    };
    (@class result) => { DigestClass::Result };
    (@class statistic) => { DigestClass::Statistic };
}
