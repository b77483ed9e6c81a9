//! The axiomatic PTX model: clause by clause, and against a model by definition.

mod by_definition;
mod clauses;
