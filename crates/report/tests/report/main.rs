//! Pages, figures and text from kept results.

mod figures;
mod fixture;
mod page;
mod text;
