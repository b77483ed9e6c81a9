//! Studies that ship, explanations, and files that are cut or changed at random.

mod explain;
mod fuzz;
mod shipped;
