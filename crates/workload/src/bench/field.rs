//! Values of fields in the struct of a program, from variables with their names.

/// A value that can be the field of a program's struct: of the same type, or a `u64` for a field of another integer type.
pub trait FieldValue<T> {
    /// The field's value.
    ///
    /// # Panics
    /// If the integer type of the field does not hold the number.
    fn field_value(self) -> T;
}

impl<T> FieldValue<T> for T {
    fn field_value(self) -> T {
        self
    }
}

macro_rules! integers {
    ($($integer:ty),+) => {
        $(
            impl FieldValue<$integer> for u64 {
                fn field_value(self) -> $integer {
                    self.try_into().unwrap_or_else(|_| panic!("{self} exceeds a field of type {}", stringify!($integer)))
                }
            }
        )+
    };
}

integers!(i32, u32, i64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_becomes_an_integer_that_holds_it() {
        let same: u64 = (1_u64 << 40).field_value();
        let narrow: i32 = 7_u64.field_value();
        assert_eq!((same, narrow), (1 << 40, 7));
    }

    #[test]
    #[should_panic(expected = "2147483648 exceeds a field of type i32")]
    fn a_count_that_does_not_fit_is_refused() {
        let _: i32 = (1_u64 << 31).field_value();
    }
}
