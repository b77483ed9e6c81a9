//! LaTeX source for a figure, with `pgfplots`. The source reads its numbers from the adjacent file written by
//! [`csv`](crate::files::csv), by column index: a changed number needs no change in the source.

use crate::document::{ChartKind, Figure};
use crate::drawing::{COLOURS, KINDS, PanelLayout, SHADES, hue, layout, mark};
use crate::files::{ColumnKind, beside};
use crate::number::brief;
use crate::page::column;
use std::fmt::Write;

/// Points per CSS pixel in TeX, with 72.27 points per inch.
const POINTS: f64 = 72.27 / 96.0;

/// Required preamble, and instructions for use.
const HEAD: &str = "\
% Needs in the preamble:
%   \\usepackage[T1]{fontenc}\\usepackage{pgfplots,pgfplotstable,xcolor}\\pgfplotsset{compat=1.17}
%   \\usepgfplotslibrary{groupplots}\\usetikzlibrary{patterns}
% From another folder: \\newcommand\\figures{folder/} before \\input.
\\providecommand\\figures{}
";

/// Hatches for bars, by look; empty for none.
const PATTERNS: [&str; KINDS] = [
    "",
    "north east lines",
    "crosshatch dots",
    "horizontal lines",
    "north west lines",
    "grid",
    "vertical lines",
    "crosshatch",
];

/// Symbols for points, by look.
const MARKS: [&str; KINDS] = ["*", "square*", "triangle*", "pentagon*", "+", "o", "square", "triangle"];

/// Dashes for lines, by look.
const DASHES: [&str; KINDS] =
    ["solid", "dashed", "dotted", "dashdotted", "loosely dashed", "densely dashed", "dashdotdotted", "loosely dotted"];

/// Returns the source for a drawn figure that reads `file`.
pub(crate) fn source(figure: &Figure, file: &str) -> String {
    let mut tex = format!("% {}\n{HEAD}", one_line(&figure.title));
    // Special characters in labels are plain characters while the file is read.
    let catcodes = |codes: [u8; 7]| {
        let set = |(sign, code): (char, u8)| format!("\\catcode`\\{sign}={code} ");
        ['%', '#', '_', '&', '$', '^', '~'].into_iter().zip(codes).map(set).collect::<String>()
    };
    writeln!(
        tex,
        "{}\n\\pgfplotstableread[col sep=comma,header=false,skip first n=1]{{\\figures {file}}}\\figurenumbers\n{}",
        catcodes([12; 7]),
        catcodes([14, 6, 8, 4, 3, 7, 13])
    )
    .expect(GROWS);
    for (look, colour) in COLOURS.iter().enumerate() {
        writeln!(tex, "\\definecolor{{look{look}}}{{HTML}}{{{}}}", colour[1..].to_uppercase()).expect(GROWS);
    }
    tex.push_str("\\begin{tikzpicture}[font=\\footnotesize]\n");
    match figure.chart.kind {
        ChartKind::Bars | ChartKind::Stacked | ChartKind::Lines => {
            Rows { figure, layout: layout(figure) }.draw(&mut tex)
        }
        ChartKind::Scatter => scatter(figure, &mut tex),
        ChartKind::Heat => heat(figure, &mut tex),
        ChartKind::Table => {}
    }
    tex.push_str("\\end{tikzpicture}\n");
    tex
}

/// Reason why writing cannot fail.
const GROWS: &str = "a string takes all";

/// A chart with rows side by side, in one or more panels.
struct Rows<'a> {
    figure: &'a Figure,
    layout: PanelLayout,
}

impl Rows<'_> {
    fn draw(&self, tex: &mut String) {
        let (figure, chart) = (self.figure, &self.figure.chart);
        let panels = &self.layout.panels;
        let (width, height) = (self.layout.width * POINTS, if panels.len() == 1 { 100.0 } else { 76.0 });
        writeln!(tex, "\\begin{{groupplot}}[group style={{group size=1 by {}, vertical sep=50pt}},", panels.len())
            .expect(GROWS);
        writeln!(tex, "  scale only axis, width={:.1}pt, height={height}pt,", width - 34.0).expect(GROWS);
        writeln!(tex, "  ylabel={{{}}}, {}", text(&y(figure)), self.ends()).expect(GROWS);
        tex.push_str("  ymajorgrids, grid style={gray!30}, tick align=outside, tick pos=left,\n");
        let turn = match self.layout.turn {
            0.0 => "",
            90.0 => "rotate=90, anchor=east, inner sep=1pt",
            _ => "rotate=45, anchor=north east, inner sep=1pt",
        };
        writeln!(tex, "  xticklabel style={{{turn}}}, unbounded coords=jump,").expect(GROWS);
        tex.push_str("  legend style={at={(0,1.03)}, anchor=south west, legend columns=3, draw=none, /tikz/every even column/.append style={column sep=6pt}},\n");
        tex.push_str("  legend cell align=left]\n");
        for (index, panel) in panels.iter().enumerate() {
            self.panel(tex, panel, index == 0, index + 1 == panels.len());
        }
        tex.push_str("\\end{groupplot}\n");
        if chart.kind == ChartKind::Lines {
            tex.push_str("% Lines are compared by their heights: the axis need not begin at zero.\n");
        }
    }

    /// Returns the axis options: bars begin at zero; a logarithmic axis has no zero.
    fn ends(&self) -> String {
        match (self.figure.chart.log_y, self.figure.chart.kind) {
            (true, _) => "ymode=log,".to_owned(),
            (false, ChartKind::Lines) => String::new(),
            (false, _) if self.is_below_zero() => String::new(),
            (false, _) => "ymin=0,".to_owned(),
        }
    }

    fn is_below_zero(&self) -> bool {
        let values = self.figure.rows.iter().flat_map(|row| &row.values).flatten();
        values.into_iter().any(|value| *value < 0.0)
    }

    /// Writes the rows of a panel, from first to last, in file order.
    fn panel(&self, tex: &mut String, panel: &[usize], is_first: bool, is_last: bool) {
        let figure = self.figure;
        let (Some(first), Some(last)) = (panel.iter().min(), panel.iter().max()) else { return };
        let ticks = panel.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let label = |row: &usize| {
            let dagger = if figure.evidence.is_flagged(*row) { "\\,\\textdagger" } else { "" };
            let label = format!("{}{dagger}", text(&figure.rows[*row].label));
            if figure.rows[*row].summary { format!("{{\\textbf{{{label}}}}}") } else { format!("{{{label}}}") }
        };
        let labels = panel.iter().map(label).collect::<Vec<_>>().join(",");
        let foot = if is_last { text(&column(&figure.chart.x)) } else { String::new() };
        writeln!(
            tex,
            "\\nextgroupplot[xmin={first}-0.6, xmax={last}+0.6, xtick={{{ticks}}}, xticklabels={{{labels}}},"
        )
        .expect(GROWS);
        let stack = if figure.chart.kind == ChartKind::Stacked && !figure.chart.log_y { ", ybar stacked" } else { "" };
        writeln!(tex, "  xlabel={{{foot}}}{stack}]").expect(GROWS);
        for series in 0..figure.series().len() {
            self.series(tex, series);
            if is_first {
                writeln!(tex, "\\addlegendentry{{{}}}", text(&column(&figure.series()[series]))).expect(GROWS);
            }
        }
        self.ranges(tex, panel);
        self.stated(tex);
        if is_first && beside(figure).iter().any(|column| column.holds == ColumnKind::Stated) {
            tex.push_str("\\addlegendimage{only marks, mark=diamond*, draw=black, fill=white}\\addlegendentry{stated by the paper}\n");
        }
        if let Some(reference) = figure.chart.reference {
            writeln!(tex, "\\draw[dashed] ({{rel axis cs:0,0}}|-{{axis cs:{first},{reference}}}) -- ({{rel axis cs:1,0}}|-{{axis cs:{first},{reference}}});").expect(GROWS);
        }
        self.numbers(tex, panel);
    }

    /// Returns the offset in points between a series and the middle of its row.
    fn shift(&self, series: usize) -> f64 {
        match self.figure.chart.kind {
            ChartKind::Bars => {
                (series as f64 - (self.figure.series().len() as f64 - 1.0) / 2.0) * self.layout.bar * POINTS
            }
            _ => 0.0,
        }
    }

    fn series(&self, tex: &mut String, series: usize) {
        let (figure, look) = (self.figure, self.figure.look(series));
        let hue = hue(look);
        let (bar, shift) = (self.layout.bar * POINTS, self.shift(series));
        let column = series + 1;
        let hatch = match PATTERNS[mark(look)] {
            "" => String::new(),
            pattern => format!(", postaction={{pattern={pattern}, pattern color=white}}"),
        };
        let style = match figure.chart.kind {
            ChartKind::Lines => {
                format!("look{hue}, {}, thick, mark={}, mark options={{solid}}", DASHES[mark(look)], MARKS[mark(look)])
            }
            _ if figure.chart.log_y => {
                format!("look{hue}, only marks, mark={}, xshift={shift:.2}pt", MARKS[mark(look)])
            }
            ChartKind::Stacked => format!("ybar, bar width={bar:.2}pt, fill=look{hue}, draw=none, area legend{hatch}"),
            _ => format!(
                "ybar, bar width={bar:.2}pt, bar shift={shift:.2}pt, fill=look{hue}, draw=none, area legend{hatch}"
            ),
        };
        writeln!(tex, "\\addplot[{style}] table[x expr=\\coordindex, y index={column}] {{\\figurenumbers}};")
            .expect(GROWS);
    }

    /// Writes ranges as whiskers.
    fn ranges(&self, tex: &mut String, panel: &[usize]) {
        let (figure, series) = (self.figure, 0..self.figure.series().len());
        if figure.chart.kind == ChartKind::Stacked && !figure.chart.log_y {
            return;
        }
        for (row, series) in panel.iter().flat_map(|row| series.clone().map(move |series| (*row, series))) {
            let Some([low, high]) = figure.evidence.range(row, series) else { continue };
            let place = format!("([xshift={:.2}pt]axis cs:{row},", self.shift(series));
            writeln!(tex, "\\draw[|-|] {place}{low}) -- {place}{high});").expect(GROWS);
        }
    }

    /// Writes the paper's values as hollow marks; in a stack, at the height of the segment's end.
    fn stated(&self, tex: &mut String) {
        let (figure, first) = (self.figure, self.figure.series().len() + 1);
        for (at, column) in beside(figure).iter().enumerate().filter(|(_, column)| column.holds == ColumnKind::Stated) {
            let (place, shift, look) = (first + at, self.shift(column.series), figure.look(column.series));
            let draw =
                if figure.chart.kind == ChartKind::Lines { format!("look{}", hue(look)) } else { "black".to_owned() };
            let below: String = match figure.chart.kind {
                ChartKind::Stacked => (1..=column.series).map(|part| format!("+\\thisrowno{{{part}}}")).collect(),
                _ => String::new(),
            };
            let stacks = if figure.chart.kind == ChartKind::Stacked { ", stack plots=false" } else { "" };
            writeln!(
                tex,
                "\\addplot[only marks, mark=diamond*, mark size=2.2pt, draw={draw}, fill=white, xshift={shift:.2}pt, forget plot{stacks}] \
                 table[x expr=\\coordindex, y expr=\\thisrowno{{{place}}}{below}] {{\\figurenumbers}};"
            )
            .expect(GROWS);
        }
    }

    /// Writes the numbers above summary rows.
    fn numbers(&self, tex: &mut String, panel: &[usize]) {
        let figure = self.figure;
        if figure.chart.kind != ChartKind::Bars {
            return;
        }
        for row in panel.iter().filter(|row| figure.rows[**row].summary) {
            for series in 0..figure.series().len() {
                let Some(value) = figure.rows[*row].value(series) else { continue };
                let top = figure.evidence.range(*row, series).map_or(value, |range| range[1].max(value));
                writeln!(
                    tex,
                    "\\node[rotate=90, anchor=west, font=\\scriptsize, xshift=1pt, yshift={:.2}pt] at (axis cs:{row},{top}) {{{}}};",
                    -self.shift(series),
                    brief(value).replace('\u{2212}', "$-$")
                )
                .expect(GROWS);
            }
        }
    }
}

fn scatter(figure: &Figure, tex: &mut String) {
    let mode = if figure.chart.log_y { "xmode=log, ymode=log," } else { "" };
    let x = if figure.chart.x.is_empty() { &figure.columns[1] } else { &figure.chart.x };
    writeln!(
        tex,
        "\\begin{{axis}}[scale only axis, width=195pt, height=195pt, {mode} xlabel={{{}}}, ylabel={{{}}},",
        text(&column(x)),
        text(&y(figure))
    )
    .expect(GROWS);
    tex.push_str("  grid=major, grid style={gray!30}, legend style={at={(0,1.03)}, anchor=south west, legend columns=3, draw=none}]\n");
    for series in 1..figure.series().len() {
        let look = figure.look(series - 1);
        writeln!(tex, "\\addplot[look{}, only marks, mark={}, mark size=1.6pt, opacity=.75] table[x index=1, y index={}] {{\\figurenumbers}};", hue(look), MARKS[mark(look)], series + 1).expect(GROWS);
        if figure.series().len() > 2 {
            writeln!(tex, "\\addlegendentry{{{}}}", text(&column(&figure.series()[series]))).expect(GROWS);
        }
    }
    let values =
        figure.rows.iter().flat_map(|row| &row.values).flatten().filter(|value| !figure.chart.log_y || **value > 0.0);
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    writeln!(tex, "\\addplot[dashed, forget plot] coordinates {{({low},{low}) ({high},{high})}};\n\\end{{axis}}")
        .expect(GROWS);
}

fn heat(figure: &Figure, tex: &mut String) {
    let (rows, columns) = (figure.rows.len(), figure.series().len());
    let list =
        |labels: Vec<String>| labels.into_iter().map(|label| format!("{{{label}}}")).collect::<Vec<_>>().join(",");
    let heads = list(figure.series().iter().map(|head| text(&column(head))).collect());
    let labels = list(figure.rows.iter().map(|row| text(&row.label)).collect());
    let longest = figure.rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    let (wide, tall) = (rows * (longest * 5).max(30), columns * 30);
    writeln!(
        tex,
        "\\begin{{axis}}[scale only axis, width={wide}pt, height={tall}pt, enlargelimits=false, clip mode=individual,"
    )
    .expect(GROWS);
    writeln!(
        tex,
        "  xmin=-0.5, xmax={rows}-0.5, ymin=-0.5, ymax={columns}-0.5, xlabel={{{}}}, ylabel={{{}}},",
        text(&column(&figure.chart.x)),
        text(&figure.chart.series)
    )
    .expect(GROWS);
    writeln!(
        tex,
        "  xtick={{0,...,{}}}, xticklabels={{{labels}}}, ytick={{0,...,{}}}, yticklabels={{{heads}}}, tick style={{draw=none}},",
        rows - 1,
        columns - 1
    )
    .expect(GROWS);
    let shades: String = SHADES.iter().map(|[red, green, blue]| format!(" rgb255=({red},{green},{blue})")).collect();
    writeln!(tex, "  colormap={{cividis}}{{{}}},", shades.trim_start()).expect(GROWS);
    writeln!(tex, "  colorbar, colorbar style={{ylabel={{{}}}}}]", text(&y(figure))).expect(GROWS);
    for column in 0..columns {
        writeln!(
            tex,
            "\\addplot[scatter, only marks, mark=square*, mark size=14pt, scatter src=explicit, \
             scatter/use mapped color={{draw=mapped color, fill=mapped color}}, \
             nodes near coords*={{\\pgfmathprintnumber[precision=2]{{\\pgfplotspointmeta}}}}, \
             every node near coord/.style={{anchor=center, font=\\scriptsize, fill=white, fill opacity=.75, text opacity=1, \
             inner sep=1pt}}] table[x expr=\\coordindex, y expr={column}, meta index={number}] {{\\figurenumbers}};",
            number = column + 1
        )
        .expect(GROWS);
    }
    let missing = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    for (row, column) in missing.filter(|(row, column)| figure.rows[*row].value(*column).is_none()) {
        writeln!(tex, "\\fill[white] (axis cs:{row}-.5,{column}-.5) rectangle (axis cs:{row}+.5,{column}+.5);")
            .expect(GROWS);
    }
    tex.push_str("\\end{axis}\n");
}

/// Returns the title of the numeric axis.
fn y(figure: &Figure) -> String {
    let name = column(&figure.chart.y);
    if figure.chart.unit.is_empty() { name } else { format!("{name} ({})", figure.chart.unit) }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Escapes text for LaTeX.
fn text(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '"' => safe.push_str("''"),
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => safe.extend(['\\', c]),
            '×' => safe.push_str("$\\times$"),
            '÷' => safe.push_str("$\\div$"),
            '±' => safe.push_str("$\\pm$"),
            '\u{2212}' => safe.push_str("$-$"),
            'µ' | 'μ' => safe.push_str("$\\mu$"),
            '–' => safe.push_str("--"),
            '…' => safe.push_str("\\ldots{}"),
            '’' => safe.push('\''),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
