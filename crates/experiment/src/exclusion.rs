//! Workloads left out from means, and from claims over all rows. The selection compares a metric per workload with a
//! bound.

use crate::error::SpecError;
use crate::figure::FigureTable;
use crate::grid::{Change, Coordinate, Numbers, beside};
use crate::plan::ExperimentPlan;
use crate::spec::Dimension;
use std::collections::BTreeSet;

impl ExperimentPlan {
    /// Checks that workloads exist to leave out, and that each list has a name and a bound.
    pub(crate) fn check_left_out(&self) -> Result<(), SpecError> {
        let refuse = |reason: String| Err(self.file.misshapen("left_out", reason));
        let has_workloads = self.layout.rows == Dimension::Workload || self.is_mean_of_workloads();
        if !self.spec.left_out.is_empty() && !has_workloads {
            return refuse("it needs rows of workloads, or cells that are means over them".into());
        }
        match self.spec.left_out.iter().find(|one| one.name.is_empty() || !one.at_least.is_finite()) {
            Some(one) => refuse(format!("{:?} needs a name and a finite `at_least`", one.name)),
            None => Ok(()),
        }
    }

    /// Returns the coordinates whose numbers decide the selection: every workload, for each list.
    pub(crate) fn deciding_coordinates(&self) -> Vec<Coordinate> {
        let mut all = Vec::new();
        for (index, at) in self.left_out_at.iter().enumerate() {
            let metric = self.spec.metric.len() + index;
            let of = |workload| beside(Coordinate { workload, metric, ..Coordinate::default() }, *at);
            all.extend((0..self.workloads.len()).map(of));
        }
        all
    }

    /// Returns the indices of the workloads left out, or `None` if a deciding number is unknown.
    pub(crate) fn left_out(&self, numbers: &mut Numbers<'_>) -> Option<BTreeSet<usize>> {
        let mut left_out = BTreeSet::new();
        for at in self.deciding_coordinates() {
            let bound = self.spec.left_out[at.metric - self.spec.metric.len()].at_least;
            if self.value(at, &Change::default(), numbers)? >= bound {
                left_out.insert(at.workload);
            }
        }
        Some(left_out)
    }

    /// Describes the workloads left out from means, and the reason.
    pub(crate) fn what_is_left_out(&self, table: &FigureTable) -> String {
        let lists = &self.spec.left_out;
        if lists.is_empty() {
            return String::new();
        }
        let name = lists.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" and ");
        let told = lists.iter().map(|one| format!("{} at least {}", one.metric.name, one.at_least));
        let told = told.collect::<Vec<_>>().join("; ");
        let labels = match &table.left_out {
            None => "a run failed, so that it is not known which".to_owned(),
            Some(labels) if labels.is_empty() => "no workload".to_owned(),
            Some(labels) => labels.join(", "),
        };
        format!("Means leave out {name} ({told}): {labels}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Results;
    use crate::claim::measured;
    use crate::plan::ScaleChoice;
    use crate::point_result::PointResult;
    use crate::reader::File;
    use crate::spec::Claim;
    use std::sync::Arc;
    use tombolo_system::sharing::SharingRecord;

    const SPEC: &str = r#"
        id = "loads"
        title = "Loads"
        caption = "Loads."
        machines = ["hmg-4x4"]
        designs = ["hmg"]
        workloads = ["triad", "pathfinder", "bfs"]
        rows = "workload"
        columns = "metric"
        mean = "arithmetic"
        metric = [{ name = "loads", value = ["sharing.loads"] }]
        chart = { kind = "bars" }

        [[left_out]]
        name = "the busy"
        at_least = 5.0
        metric = { name = "remote loads", value = ["sharing.inter_gpu_loads"] }
    "#;

    fn plan(text: &str) -> Result<ExperimentPlan, SpecError> {
        let file = File { name: "x.toml".into(), text: text.into() };
        let spec = file.read()?;
        ExperimentPlan::new(file, spec, ScaleChoice::Paper)
    }

    /// Returns the table if `finished` points are done, among three workloads with 1, 2 and 6 loads; 0, 4 and 5 remote
    /// loads respectively.
    fn table(plan: &ExperimentPlan, finished: usize) -> FigureTable {
        let mut results = Results::new();
        let mut keys: Vec<_> = plan
            .points(&Change::default())
            .iter()
            .map(|asked| asked.as_ref().expect("a point").key().clone())
            .collect();
        // A point that is its own base is requested twice.
        keys.dedup();
        for (key, (loads, inter_gpu_loads)) in keys.into_iter().zip([(1, 0), (2, 4), (6, 5)]) {
            let record = SharingRecord { loads, inter_gpu_loads, ..SharingRecord::default() };
            results.insert(key, Ok(Arc::new(PointResult::Sharing(record))));
            if results.len() == finished {
                break;
            }
        }
        FigureTable::of(plan, &Change::default(), &mut Numbers::new(&results))
    }

    fn value(table: &FigureTable, row: &str) -> Option<f64> {
        table.row(row).expect("the row").values[0]
    }

    #[test]
    fn workloads_that_reach_the_bound_are_left_out_of_means_and_of_claims_of_all_rows() {
        let plan = plan(SPEC).unwrap();
        let table = table(&plan, 3);
        assert_eq!((value(&table, "mean"), value(&table, "mean-of-all")), (Some(1.5), Some(3.0)));
        assert_eq!(value(&table, "arithmetic mean of the rest"), Some(1.5));
        assert_eq!(value(&table, "bfs"), Some(6.0), "its row stays");
        let claim = "id = 'a'\nkind = 'magnitude'\ntext = ''\nof = [{ columns = ['loads'] }]\neach_row = 'greatest'";
        assert_eq!(measured(&toml::from_str::<Claim>(claim).unwrap(), &table), Some(2.0));
        assert_eq!(plan.figure(&table).left_out, "Means leave out the busy (remote loads at least 5): bfs.");
    }

    #[test]
    fn cells_that_are_means_leave_them_out_too() {
        let plan = plan(&SPEC.replace("rows = \"workload\"", "rows = \"design\"")).unwrap();
        assert_eq!(value(&table(&plan, 3), "hmg"), Some(1.5));
    }

    #[test]
    fn there_is_no_mean_while_it_is_not_known_who_is_left_out() {
        let plan = plan(SPEC).unwrap();
        let table = table(&plan, 2);
        assert_eq!((value(&table, "mean"), value(&table, "triad")), (None, Some(1.0)));
        assert!(plan.figure(&table).left_out.contains("not known which"));
    }

    #[test]
    fn a_number_may_be_over_another_one_of_its_base() {
        let over =
            "value = [\"sharing.inter_gpu_loads\"], relative = \"ratio\", to = {}, to_value = [\"sharing.loads\"] }]";
        let text = SPEC.replace("value = [\"sharing.loads\"] }]", over);
        let table = table(&plan(&text).unwrap(), 3);
        assert_eq!((value(&table, "pathfinder"), value(&table, "bfs")), (Some(4.0 / 2.0), Some(5.0 / 6.0)));
        let without = text.replace("relative = \"ratio\", to = {}, ", "");
        assert!(plan(&without).err().expect("refused").to_string().contains("needs `to`"));
    }

    #[test]
    fn a_list_without_workloads_name_or_bound_is_refused() {
        for (from, to, reason) in [
            ("rows = \"workload\"", "rows = \"machine\"", "rows of workloads"),
            ("at_least = 5.0", "at_least = nan", "finite"),
            ("\"the busy\"", "\"\"", "needs a name"),
        ] {
            let text = SPEC.replace(from, to).replace("mean = \"arithmetic\"", "");
            let text = if reason == "rows of workloads" { text.replace(", \"pathfinder\", \"bfs\"", "") } else { text };
            let message = plan(&text).err().expect("refused").to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
