//! Checked descriptions of machines and designs, their presets and their scaling.
