//! Explorations: programs under protocols, every interleaving of their messages, to the end.

mod broken_rules;
mod clean;
mod copies;
mod elision;
mod nodes;
mod paging;
mod publication;
mod reductions;
mod shapes;
mod subscribers;
