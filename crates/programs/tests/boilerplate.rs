//! Share of boilerplate in the source of the shipped programs, held below a bound.
//!
//! Counted as boilerplate, without blank lines and comments:
//! - imports and module lists;
//! - parameters: tables, constants, functions that return them, and their help texts, also in the form of comments;
//! - registration: `program!`, statics of type `Benchmark`, `impl Workload`, and the table of programs;
//! - layout: `arrays!`, structs that implement `Instance` or have arrays, and functions that add arrays to a `&mut Memory`;
//! - the first and the last line of each `impl Instance`.
//!
//! Statements of a layout that do not touch the memory are told apart: they derive sizes from parameters, and refuse
//! sizes, which no declaration can do for a program.
//!
//! Tests are left out, and rustfmt's lines count as they are. `cargo test -p tombolo-programs --test boilerplate --
//! --nocapture` prints the count of each program.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// Largest share of lines.
const MOST: f64 = 0.12;

/// Numbers of lines.
#[derive(Clone, Copy, Default)]
struct LineCount {
    boilerplate: usize,
    /// Statements that derive sizes from parameters.
    sizes: usize,
    all: usize,
}

impl std::ops::Add for LineCount {
    type Output = LineCount;

    fn add(self, other: LineCount) -> LineCount {
        LineCount {
            boilerplate: self.boilerplate + other.boilerplate,
            sizes: self.sizes + other.sizes,
            all: self.all + other.all,
        }
    }
}

impl std::fmt::Display for LineCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LineCount { boilerplate, sizes, all } = self;
        let share = 100.0 * *boilerplate as f64 / *all as f64;
        write!(f, "{boilerplate:5} of {all:5} lines, {share:4.1} %; {sizes:4} derive sizes")
    }
}

/// The source lines of the file of a module, without its tests.
struct Source {
    lines: Vec<String>,
}

impl Source {
    fn read(path: &Path) -> Source {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let all = Source { lines: text.lines().map(str::to_owned).collect() };
        let tests: BTreeSet<usize> = all.items().filter(|item| all.is_test(item)).flatten().collect();
        let kept = all.lines.iter().enumerate().filter(|(at, _)| !tests.contains(at));
        Source { lines: kept.map(|(_, line)| line.clone()).collect() }
    }

    /// Items at the left margin, with the attributes before them. An item ends at the first line that closes it.
    fn items(&self) -> impl Iterator<Item = Range<usize>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            while self.lines.get(next).is_some_and(|line| is_comment(line)) {
                next += 1;
            }
            let start = next;
            let is_start = |line: &str| !line.starts_with(' ') && !line.starts_with("#[") && !is_comment(line);
            let head = (start..self.lines.len()).find(|at| is_start(&self.lines[*at]))?;
            let is_short = self.lines[head].ends_with('=');
            let closes = |line: &str| {
                if is_short { line.ends_with(';') } else { !line.starts_with(' ') && line.ends_with([';', '}', ']']) }
            };
            let end = (head..self.lines.len()).find(|at| closes(&self.lines[*at]));
            next = end.unwrap_or_else(|| panic!("the item of line {head} ends: {}", self.lines[head])) + 1;
            Some(start..next)
        })
    }

    /// First line of an item after its attributes.
    fn head(&self, item: &Range<usize>) -> &str {
        let line = self.lines[item.clone()].iter().find(|line| !line.starts_with("#[") && !is_comment(line));
        line.expect("an item has a line")
    }

    fn is_test(&self, item: &Range<usize>) -> bool {
        self.lines[item.clone()].iter().any(|line| line == "#[cfg(test)]")
    }

    /// Modules in files of their own. Modules of tests are no longer there.
    fn modules(&self) -> impl Iterator<Item = &str> {
        let heads = self.items().map(|item| without_visibility(self.head(&item)));
        heads.filter_map(|head| head.strip_prefix("mod ")?.strip_suffix(';'))
    }

    /// `instances`: types that implement `Instance`.
    fn count(&self, instances: &BTreeSet<String>) -> LineCount {
        let (mut counted, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        for item in self.items() {
            let text = self.lines[item.clone()].join("\n");
            let head = without_visibility(self.head(&item));
            let is_program = head.starts_with("program!");
            if is_boilerplate(head, &text, instances) {
                counted.extend(item.clone());
            } else if head.starts_with("impl Instance for ") {
                counted.extend([item.start, item.end - 1]);
            }
            for layout in self.layouts(item.clone(), is_program) {
                sizes.extend(self.sizes(&layout, is_program));
                counted.extend(layout);
            }
            counted.retain(|at| !is_comment(&self.lines[*at]));
            sizes.retain(|at| !is_comment(&self.lines[*at]));
            counted.extend(self.help_texts(item));
        }
        counted.retain(|at| !sizes.contains(at));
        LineCount { boilerplate: counted.len(), sizes: sizes.len(), all: self.lines.len() }
    }

    /// Lines of the statements of a layout that do not touch the memory. The last statement of a function builds the struct.
    fn sizes(&self, layout: &Range<usize>, is_program: bool) -> Vec<usize> {
        let indent_of = |at: usize| self.lines[at].len() - self.lines[at].trim_start().len();
        let indent = indent_of(layout.start) + 4;
        let Some(open) = layout.clone().find(|at| self.lines[*at].ends_with('{')) else { return Vec::new() };
        let body = open + 1..layout.end - 1;
        let is_start = |at: &usize| {
            let line = &self.lines[*at];
            indent_of(*at) == indent && !line.trim().is_empty() && !line.trim_start().starts_with([')', ']', '}'])
        };
        let starts: Vec<usize> = body.clone().filter(is_start).collect();
        let ends = starts.iter().skip(1).copied().chain([body.end]);
        let mut statements: Vec<_> = starts.iter().zip(ends).map(|(start, end)| *start..end).collect();
        if !is_program {
            statements.pop();
        }
        let touches =
            |statement: &Range<usize>| self.lines[statement.clone()].iter().any(|line| line.contains("memory"));
        statements.into_iter().filter(|statement| !touches(statement)).flatten().collect()
    }

    /// Comments that are the help texts of the parameters in a macro.
    fn help_texts(&self, item: Range<usize>) -> impl Iterator<Item = usize> {
        let mut is_inside = self.head(&item).starts_with("parameters!");
        item.filter(move |at| {
            let line = self.lines[*at].as_str();
            is_inside = (is_inside || line == "    parameters {") && line != "    }";
            is_inside && line.trim_start().starts_with("///")
        })
    }

    /// The functions in an item that add arrays to a memory, or the statements of a program's declaration.
    fn layouts(&self, item: Range<usize>, is_program: bool) -> Vec<Range<usize>> {
        let begins = |at: &usize| {
            let line = self.lines[*at].trim_start();
            if is_program { line.starts_with("lay_out(") } else { without_visibility(line).starts_with("fn ") }
        };
        let extent = |start: usize| {
            let indent = &self.lines[start][..self.lines[start].len() - self.lines[start].trim_start().len()];
            let body = (start..item.end).find(|at| self.lines[*at].ends_with(['{', '}']))?;
            if self.lines[body].ends_with("{}") {
                return None;
            }
            let adds_arrays = self.lines[start..=body].iter().any(|line| line.contains("&mut Memory"));
            let end = (body..item.end).find(|at| self.lines[*at] == format!("{indent}}}"))?;
            (is_program || adds_arrays).then_some(start..end + 1)
        };
        item.clone().filter(begins).filter_map(extent).collect()
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") || line.trim().is_empty()
}

fn without_visibility(line: &str) -> &str {
    let line = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').expect("an item follows").1);
    line.strip_prefix("const fn ").map_or(line, |_| &line["const ".len()..])
}

fn is_boilerplate(head: &str, text: &str, instances: &BTreeSet<String>) -> bool {
    let word = |at| head.split([' ', '(', '<', ';']).nth(at).unwrap_or_default();
    match word(0) {
        "use" | "mod" => true,
        "program!" | "parameters!" | "arrays!" | "workloads![" => true,
        "macro_rules!" => ["workloads", "suite"].contains(&word(1)),
        "static" | "const" => ["Parameter", "Benchmark", "Workload", "MultiGpu", "ConvolutionLayer"]
            .iter()
            .any(|type_name| head.split(" = ").next().is_some_and(|left| left.contains(type_name))),
        "fn" => text
            .split('{')
            .next()
            .is_some_and(|signature| signature.contains("-> [Parameter") || signature.contains("-> Parameter ")),
        "impl" => head.starts_with("impl Workload for "),
        "struct" => instances.contains(word(1)) || text.contains("Array<"),
        _ => false,
    }
}

/// Reads a module and the modules in it, by paths below the crate's source.
fn read(path: &str, sources: &mut BTreeMap<String, Source>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let named = ["", "/mod"].map(|end| root.join(format!("{path}{end}.rs")));
    let source = Source::read(named.iter().find(|file| file.exists()).expect("a module has a file"));
    let folder = if path == "lib" { String::new() } else { format!("{path}/") };
    source.modules().for_each(|module| read(&format!("{folder}{module}"), sources));
    sources.insert(path.to_owned(), source);
}

/// Counts by program: the two first parts of a module's path, suite and program.
fn counts() -> BTreeMap<String, LineCount> {
    let mut sources = BTreeMap::new();
    read("lib", &mut sources);
    let lines = sources.values().flat_map(|source| &source.lines);
    let named = lines.filter_map(|line| line.strip_prefix("impl Instance for ")?.split([' ', '<']).next());
    let instances: BTreeSet<String> = named.map(str::to_owned).collect();
    let mut counts = BTreeMap::<String, LineCount>::new();
    for (path, source) in &sources {
        let program = path.split('/').take(2).collect::<Vec<_>>().join("/");
        let count = counts.entry(program).or_default();
        *count = *count + source.count(&instances);
    }
    counts
}

#[test]
fn boilerplate_is_a_small_share_of_the_programs() {
    let counts = counts();
    counts.iter().for_each(|(program, count)| println!("{program:32} {count}"));
    let total = counts.values().fold(LineCount::default(), |sum, count| sum + *count);
    println!("{:32} {total}", "in total");
    assert!(counts.len() > 100 && total.boilerplate > 1000, "the programs are read: {total}");
    assert!(total.boilerplate as f64 <= MOST * total.all as f64, "at most {:.0} %: {total}", 100.0 * MOST);
}
