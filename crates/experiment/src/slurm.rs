//! Script for Slurm clusters: an array of jobs, each running a part of the points, with a shared results folder.

use crate::error::StoreError;
use crate::shell::quoted;
use crate::store::write_whole;
use std::path::{Path, PathBuf};

/// Maximum number of tasks in an array. Source: Slurm's default `MaxArraySize=1001` (slurm.conf manual), which refuses
/// indices above 1000.
pub const LARGEST_ARRAY: usize = 1000;

/// Writes the script next to the results. `command`: words of a sweep command without engine and shard. `jobs`: number
/// of parts for the points, at least 1; beyond [`LARGEST_ARRAY`], an array task runs several parts in sequence.
///
/// # Errors
/// Returns an error if the folder cannot be created or written.
pub fn script(out: &Path, command: &[String], jobs: usize, threads: usize) -> Result<PathBuf, StoreError> {
    std::fs::create_dir_all(out).map_err(|error| StoreError {
        path: out.to_owned(),
        action: "make the folder",
        error,
    })?;
    let path = out.join("sweep.sbatch");
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let command = command.join(" ");
    let tasks = jobs.clamp(1, LARGEST_ARRAY);
    let last = tasks - 1;
    let run = format!("{command} --threads {threads} --shard");
    let body = if tasks == jobs {
        format!("exec {run} \"$SLURM_ARRAY_TASK_ID/{jobs}\"\n")
    } else {
        // A failing part does not stop the following parts; the task fails at its end.
        format!(
            "status=0\n\
             for ((part = SLURM_ARRAY_TASK_ID; part < {jobs}; part += {tasks})); do\n    \
                 {run} \"$part/{jobs}\" || status=$?\n\
             done\n\
             exit $status\n"
        )
    };
    // Relative file names in the experiment are resolved from this directory.
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
         {body}"
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

    #[test]
    fn tasks_of_an_array_that_slurm_takes_share_more_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), &["echo".to_owned()], 2500, 1).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("#SBATCH --array=0-999\n"), "{text}");
        let parts = |task: &str| {
            let run = std::process::Command::new("bash").arg(&path).env("SLURM_ARRAY_TASK_ID", task).output();
            let told = String::from_utf8(run.expect("bash runs").stdout).unwrap();
            told.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(parts("7"), ["7/2500", "1007/2500", "2007/2500"]);
        assert_eq!(parts("999"), ["999/2500", "1999/2500"]);
    }
}
