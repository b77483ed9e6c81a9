//! A script for clusters that run Slurm: an array of jobs, each a part of the points, into one shared folder.

use crate::error::StoreError;
use crate::shell::quoted;
use crate::store::write_whole;
use std::path::{Path, PathBuf};

/// Writes the script beside the results. `command` are the words of a sweep without engine and shard; `jobs` parts.
///
/// # Errors
/// The folder cannot be made or written.
pub fn script(out: &Path, command: &[String], jobs: usize, threads: usize) -> Result<PathBuf, StoreError> {
    std::fs::create_dir_all(out).map_err(|error| StoreError {
        path: out.to_owned(),
        action: "make the folder",
        error,
    })?;
    let path = out.join("sweep.sbatch");
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let command = command.join(" ");
    let last = jobs.saturating_sub(1);
    // Files that the experiment names are looked for from here.
    let here = std::env::current_dir().map_or_else(|_| ".".to_owned(), |path| path.display().to_string());
    let here = quoted(&here);
    let text = format!(
        "#!/bin/bash\n\
         # Part of the points each; all keep their results in one folder, which every node must see.\n\
         # A job that ends early may be submitted again: finished points are not run twice. When all have ended,\n\
         # the same sweep without --shard makes the tables and the report:\n\
         #   {command}\n\
         #SBATCH --job-name=tombolo\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --cpus-per-task={threads}\n\
         set -euo pipefail\n\
         cd {here}\n\
         exec {command} --threads {threads} --shard \"$SLURM_ARRAY_TASK_ID/{jobs}\"\n"
    );
    write_whole(&path, text.as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_job_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let command = ["tombolo", "sweep", "my sweep.toml"].map(str::to_owned);
        let path = script(folder.path(), &command, 8, 4).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("#SBATCH --array=0-7\n"), "{text}");
        assert!(
            text.contains("exec tombolo sweep 'my sweep.toml' --threads 4 --shard \"$SLURM_ARRAY_TASK_ID/8\""),
            "{text}"
        );
    }
}
