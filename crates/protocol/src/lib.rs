//! Every rule that decides what a load may return, as pure functions.
