//! Temporary: bytes that each module sends.
use std::sync::Arc;
use tombolo_system::{RunSpec, run};
use tombolo_workload::bench::{Mode, Request, find, record};
use tombolo_workload::record::RecordOptions;

fn main() {
    for spelled in std::env::args().skip(1) {
        let words: Vec<&str> = spelled.split_whitespace().collect();
        let [machine, design, scale, workload, settings @ ..] = &words[..] else { panic!() };
        let mut description = tombolo_machine::machine(machine).unwrap();
        let mut designs = [tombolo_design::design(design).unwrap()];
        tombolo_design::apply(settings, &mut description, &mut designs).unwrap();
        let [design_config] = designs;
        let machine_config = Arc::new(description.check().unwrap().scaled(scale.parse().unwrap()).unwrap());
        let mut parts = workload.split(',');
        let name = parts.next().unwrap();
        let given: Vec<_> =
            parts.filter_map(|t| t.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
        let (n, d) = scale.split_once('/').unwrap_or((scale, "1"));
        let s = tombolo_workload::scale::Scale::new(n.parse().unwrap(), d.parse().unwrap()).unwrap();
        let request = Request::new(find(name).unwrap(), s, &given, 1).unwrap();
        let options = RecordOptions {
            line: machine_config.line,
            warp_width: machine_config.sm.warp_width,
            ..RecordOptions::default()
        };
        let program = Arc::new(record(find(name).unwrap(), &request, &options, Mode::Auto).unwrap());
        let spec = RunSpec {
            machine: machine_config,
            design: design_config.check().unwrap(),
            program,
            pages: None,
            threads: 1,
        };
        let record = run(&spec).unwrap();
        let sent: Vec<u64> = record.modules.iter().map(|module| module.sent_bytes).collect();
        println!(
            "{spelled}: time {} busy {} sent {sent:?} dram writes {}",
            record.time_s, record.gpus[0].busy_s, record.dram.write_bytes
        );
    }
}
