//! Bar charts, grouped or stacked, from zero; on a logarithmic axis, points replace bars.

use super::axis::ChartAxis;
use super::canvas::{Anchor, Canvas, rectangle, width_of};
use super::categories::{NameLayout, RowPosition};
use super::frame::{Frame, margin};
use super::legend::{self, SeriesMark};
use super::looks::{diamond, diamond_paint, fill, paint, symbol, whisker};
use super::sheet::{Sheet, Surface};
use super::{FinishedDrawing, LEAST_BAR};
use crate::document::{ChartKind, Figure};

/// Maximum width of a bar.
const WIDEST_BAR: f64 = 40.0;

/// Maximum number of bars with a printed number each in a chart without summary rows. Source: assumed, a chart that is
/// not crowded.
const NUMBERED: usize = 24;

/// Width division between rows, in bar widths.
struct BarSpacing {
    /// Bars in a row.
    bars: f64,
    /// Gap between the bars of two rows.
    gap: f64,
    /// Additional gap before summary rows.
    apart: f64,
}

impl BarSpacing {
    fn of(bars: f64) -> BarSpacing {
        let gap = (0.28 * bars).clamp(0.5, 2.0);
        BarSpacing { bars, gap, apart: 1.0 + gap }
    }
}

/// Rows side by side: each row with a left edge, in bar widths.
type Panel = Vec<(usize, f64)>;

struct Bars<'a, 's> {
    sheet: &'a Sheet<'s>,
    axis: ChartAxis,
    shares: BarSpacing,
    stacked: bool,
    /// True if numbers are drawn in the form of points.
    points: bool,
}

/// Layout of a chart's rows on paper.
pub(crate) struct PanelLayout {
    /// Width of the drawing, in CSS pixels.
    pub(crate) width: f64,
    /// Width of a bar, in CSS pixels.
    pub(crate) bar: f64,
    /// Rows in each panel.
    pub(crate) panels: Vec<Vec<usize>>,
    /// Rotation of names in degrees, for names wider than their slot.
    pub(crate) turn: f64,
}

/// Computes the layout of a figure's rows on paper; line charts are laid out with a single bar per row.
pub(crate) fn layout(figure: &Figure) -> PanelLayout {
    let sheet = Sheet::new(figure, Surface::Paper, &|_| None);
    let bars = if figure.chart.kind == ChartKind::Bars { Bars::of(&sheet) } else { Bars::stacked(&sheet) };
    let (width, bar, panels, _) = bars.layout();
    let panels: Vec<Vec<usize>> = panels.iter().map(|panel| panel.iter().map(|(row, _)| *row).collect()).collect();
    let slot = (bars.shares.bars + bars.shares.gap) * bar;
    let turn = NameLayout::of(&sheet, &panels.concat(), slot).turn;
    PanelLayout { width, bar, panels, turn }
}

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> FinishedDrawing {
    Bars::of(sheet).picture()
}

/// Returns the ends of all segments in all stacks, and the remaining numbers inside the axis range.
fn ends_of_stacks(sheet: &Sheet<'_>) -> Vec<f64> {
    let mut ends: Vec<f64> = sheet.figure.chart.reference.into_iter().collect();
    for row in 0..sheet.figure.rows.len() {
        for (series, low, high) in parts(sheet, row) {
            ends.extend([low, high]);
            ends.extend(sheet.stated(row, series).iter().map(|stated| low + stated));
        }
    }
    ends
}

/// Returns the segments in a row's stack: series, start and end. Negative numbers extend downwards.
fn parts(sheet: &Sheet<'_>, row: usize) -> Vec<(usize, f64, f64)> {
    let (mut up, mut down) = (0.0, 0.0);
    let mut parts = Vec::new();
    for series in sheet.series() {
        let Some(value) = sheet.value(row, series) else { continue };
        let end = if value < 0.0 { &mut down } else { &mut up };
        parts.push((series, *end, *end + value));
        *end += value;
    }
    parts
}

impl<'a, 's> Bars<'a, 's> {
    fn of(sheet: &'a Sheet<'s>) -> Bars<'a, 's> {
        let (chart, count) = (&sheet.figure.chart, sheet.series().len());
        if chart.kind == ChartKind::Stacked && !chart.log_y {
            return Bars::stacked(sheet);
        }
        let points = chart.log_y;
        Bars {
            sheet,
            axis: ChartAxis::over(&sheet.numbers(), points, !points),
            shares: BarSpacing::of(count as f64),
            stacked: false,
            points,
        }
    }

    fn stacked(sheet: &'a Sheet<'s>) -> Bars<'a, 's> {
        let axis = ChartAxis::over(&ends_of_stacks(sheet), false, true);
        Bars { sheet, axis, shares: BarSpacing::of(1.0), stacked: true, points: false }
    }

    fn picture(&self) -> FinishedDrawing {
        let sheet = self.sheet;
        let (font, mut canvas) = (sheet.font, Canvas::default());
        let (width, bar, panels, left) = self.layout();
        let slot = (self.shares.bars + self.shares.gap) * bar;
        let drawn = if self.points { SeriesMark::Points } else { SeriesMark::Bars };
        let top = legend::draw(&mut canvas, sheet, drawn, 0.0, width) + 0.6 * font;
        let [alone, of_several] = sheet.surface.heights();
        let height = if panels.len() == 1 { alone } else { of_several };
        let headroom = self.headroom(bar, height);
        let first = Frame { left, top: top + headroom, width: width - left - 1.0, height };
        let mut bottom = first.bottom();
        let mut top = first.top;
        for panel in &panels {
            let frame = Frame { top, ..first };
            frame.draw_numbers(&mut canvas, sheet, &self.axis);
            self.panel(&mut canvas, frame, panel, bar);
            frame.draw_edges(&mut canvas, sheet, &self.axis);
            self.beside(&mut canvas, frame, panel, bar);
            let places: Vec<RowPosition> = panel.iter().map(|(row, x)| (*row, left + x * bar + slot / 2.0)).collect();
            let rows: Vec<usize> = panel.iter().map(|(row, _)| *row).collect();
            let names = NameLayout::of(sheet, &rows, slot);
            names.draw(&mut canvas, sheet, &places, frame.bottom());
            bottom = frame.bottom() + names.height;
            top = bottom + headroom + 0.4 * font;
        }
        // Row names in a panel extend to its left: no room for a title remains between two panels.
        first.draw_title(&mut canvas, sheet, &sheet.y());
        let foot = &sheet.figure.chart.x;
        if !foot.is_empty() {
            first.draw_foot(&mut canvas, &crate::page::column(foot), bottom + font);
        }
        FinishedDrawing { canvas, width, height: bottom + if foot.is_empty() { 0.2 * font } else { 1.4 * font } }
    }

    /// Computes the width of the drawing and of a bar, the panels, and the left edge of their plots.
    fn layout(&self) -> (f64, f64, Vec<Panel>, f64) {
        let (sheet, BarSpacing { bars, gap, apart }) = (self.sheet, &self.shares);
        let [rows, sums] = sheet.rows();
        let slot = bars + gap;
        let units = (rows.len() + sums.len()) as f64 * slot + if sums.is_empty() { 0.0 } else { *apart };
        let all: Vec<usize> = rows.iter().chain(&sums).copied().collect();
        // Names may extend to the left of a panel's first row.
        let left = |bar: f64, panels: &[&[usize]]| {
            let names = NameLayout::of(sheet, &all, slot * bar);
            let before = panels.iter().map(|rows| names.before(sheet, rows, slot * bar));
            before.fold(margin(sheet, &self.axis, &sheet.y()), f64::max)
        };
        let first = &[&all[..]];
        let cautious = left(LEAST_BAR, &all.chunks(1).collect::<Vec<_>>());
        let fitting = |width: f64, left: f64, units: f64| ((width - left - 1.0) / units).min(WIDEST_BAR);
        // Wider bars may change the rotation of names, and the names then need more room on the left.
        let alone = |width: f64| {
            let bar = fitting(width, left(LEAST_BAR, first), units);
            let left = left(LEAST_BAR, first).max(left(bar, first));
            (fitting(width, left, units), left)
        };
        let widths = sheet.surface.widths();
        let widest = widths[widths.len() - 1];
        let comfortable = widths.iter().find(|width| alone(**width).0 >= sheet.surface.comfortable_bar());
        let width = comfortable.copied().unwrap_or(widest);
        let lined = |rows: &[usize], sums: &[usize]| {
            let place = |(index, row): (usize, &usize)| {
                let gap = if index >= rows.len() && !rows.is_empty() { *apart } else { 0.0 };
                (*row, index as f64 * slot + gap)
            };
            rows.iter().chain(sums).enumerate().map(place).collect::<Panel>()
        };
        let (bar, room) = alone(width);
        if bar >= LEAST_BAR {
            // Bars at their maximum width leave room.
            return (width.min(room + units * bar + 1.0).max(0.6 * widths[0]), bar, vec![lined(&rows, &sums)], room);
        }
        let across = ((widest - cautious - 1.0) / LEAST_BAR - apart) / slot;
        let most = (across.floor() as usize).max(1);
        let most = all.len().div_ceil(all.len().div_ceil(most));
        let cut = |line: &[usize]| {
            let (rows, sums): (Vec<usize>, Vec<usize>) = line.iter().partition(|row| rows.contains(row));
            lined(&rows, &sums)
        };
        let left = left(LEAST_BAR, &all.chunks(most).collect::<Vec<_>>());
        let units = most as f64 * slot + apart;
        let width = widest.max(left + 1.0 + units * LEAST_BAR);
        (width, fitting(width, left, units).max(LEAST_BAR), all.chunks(most).map(cut).collect(), left)
    }

    /// Draws a panel's contents.
    fn panel(&self, canvas: &mut Canvas, frame: Frame, panel: &Panel, bar: f64) {
        let sheet = self.sheet;
        for series in sheet.series() {
            let look = sheet.look(series);
            let painted = match self.points {
                true => paint(sheet.surface, look),
                false => format!("fill=\"{}\"", fill(sheet.surface, look)),
            };
            canvas.group(&painted, |canvas| {
                for (row, x) in panel {
                    let x = frame.left + (x + self.shares.gap / 2.0) * bar;
                    if let Some(shape) = self.shape(frame, *row, series, x, bar) {
                        canvas.mark(&shape, "", &sheet.about(*row, series));
                    }
                }
            });
        }
    }

    /// Draws annotations on a panel's bars: ranges, the paper's values, and numbers.
    fn beside(&self, canvas: &mut Canvas, frame: Frame, panel: &Panel, bar: f64) {
        let left = |x: f64| frame.left + (x + self.shares.gap / 2.0) * bar;
        for (row, x) in panel {
            self.marks(canvas, frame, *row, left(*x), bar);
        }
        let (size, card) = (super::at(self.number_font()), self.sheet.surface.card());
        let halo = format!("font-size=\"{size}\" stroke=\"{card}\" stroke-width=\"2.5\" paint-order=\"stroke\"");
        canvas.group(&halo, |canvas| {
            for (middle, top, text) in panel.iter().flat_map(|(row, x)| self.number_labels(frame, *row, left(*x), bar))
            {
                match self.is_turned(&text, bar) {
                    true => {
                        let place = (middle + 0.33 * self.number_font(), top - 3.0);
                        canvas.words(place, Anchor::Start, -90.0, "", &text);
                    }
                    false => canvas.words((middle, top - 3.0), Anchor::Middle, 0.0, "", &text),
                }
            }
        });
    }

    /// Returns the left edge of a series' bar, relative to its row's edge.
    fn offset(&self, series: usize, bar: f64) -> f64 {
        if self.stacked { 0.0 } else { (series - self.sheet.series().start) as f64 * bar }
    }

    /// Returns the start and end of a number's bar or segment.
    fn ends(&self, row: usize, series: usize) -> Option<[f64; 2]> {
        match self.stacked {
            true => parts(self.sheet, row).into_iter().find(|part| part.0 == series).map(|(_, low, high)| [low, high]),
            false => self.sheet.value(row, series).map(|value| [0.0, value]),
        }
    }

    fn shape(&self, frame: Frame, row: usize, series: usize, x: f64, bar: f64) -> Option<String> {
        let [from, to] = self.ends(row, series)?;
        let (x, y) = (x + self.offset(series, bar), frame.y(&self.axis, to)?);
        if self.points {
            return Some(symbol(self.sheet.look(series), x + bar / 2.0, y, (0.35 * bar).min(0.4 * self.sheet.font)));
        }
        let zero = frame.y(&self.axis, from)?;
        // A thin strip in the card's colour separates adjacent bars.
        Some(rectangle(x + 0.2, y.min(zero), bar - 0.4, (zero - y).abs()))
    }

    /// Draws the ranges of a row's numbers, and the paper's values.
    fn marks(&self, canvas: &mut Canvas, frame: Frame, row: usize, x: f64, bar: f64) {
        let (sheet, ink) = (self.sheet, self.sheet.surface.ink());
        for series in sheet.series() {
            let middle = x + self.offset(series, bar) + bar / 2.0;
            let range = sheet.range(row, series).filter(|_| !self.stacked);
            let ends = range.and_then(|[low, high]| Some([frame.y(&self.axis, low)?, frame.y(&self.axis, high)?]));
            if let Some([low, high]) = ends {
                let stroke = format!("stroke=\"{ink}\" stroke-width=\"1\" fill=\"none\"");
                canvas.path(&whisker(middle, low, high, (0.25 * bar).min(4.0)), &stroke);
            }
            let below = if self.stacked { self.ends(row, series).map_or(0.0, |[from, _]| from) } else { 0.0 };
            for stated in sheet.stated(row, series) {
                if let Some(y) = frame.y(&self.axis, below + stated) {
                    canvas.path(&diamond(middle, y, (0.3 * bar).min(4.5)), &diamond_paint(sheet.surface, ink));
                }
            }
        }
    }

    fn number_font(&self) -> f64 {
        0.88 * self.sheet.font
    }

    /// True if a number is wider than its bar plus half a gap on either side, and is therefore drawn upright.
    fn is_turned(&self, text: &str, bar: f64) -> bool {
        let room = if self.shares.bars > 1.0 { bar } else { bar * (1.0 + self.shares.gap) };
        width_of(text, self.number_font()) > room
    }

    /// Returns the printed numbers in a row: horizontal middle, lower edge, and text for each. Summary rows print
    /// numbers. Without summary rows, all rows do if the bars are few.
    fn number_labels(&self, frame: Frame, row: usize, x: f64, bar: f64) -> Vec<(f64, f64, String)> {
        let sheet = self.sheet;
        let [rows, sums] = sheet.rows();
        let few = sums.is_empty() && rows.len() * if self.stacked { 1 } else { sheet.series().len() } <= NUMBERED;
        if !few && !sums.contains(&row) {
            return Vec::new();
        }
        if self.stacked {
            let parts = parts(sheet, row);
            let (top, sum) =
                (parts.iter().map(|part| part.2).fold(0.0, f64::max), parts.iter().map(|part| part.2 - part.1).sum());
            let y = frame.y(&self.axis, top).filter(|_| !parts.is_empty());
            return y.map(|y| (x + bar / 2.0, y, Sheet::brief(sum))).into_iter().collect();
        }
        let one = |series: usize| {
            let value = sheet.value(row, series)?;
            let stated = sheet.stated(row, series).into_iter().map(|stated| (stated, 1.3 * (0.3 * bar).min(4.5)));
            let range = sheet.range(row, series).map(|[_, high]| (high, 0.0));
            let reached = std::iter::once((value.max(0.0), if self.points { 0.35 * bar } else { 0.0 }));
            let tops =
                reached.chain(stated).chain(range).filter_map(|(at, room)| Some(frame.y(&self.axis, at)? - room));
            let top = tops.fold(f64::INFINITY, f64::min);
            top.is_finite().then(|| (x + self.offset(series, bar) + bar / 2.0, top, Sheet::brief(value)))
        };
        sheet.series().filter_map(one).collect()
    }

    /// Returns the room required above a plot for numbers extending beyond the plot.
    fn headroom(&self, bar: f64, height: f64) -> f64 {
        let frame = Frame { left: 0.0, top: 0.0, width: 0.0, height };
        let rows = 0..self.sheet.figure.rows.len();
        let reach = |(_, top, text): (f64, f64, String)| {
            let size = self.number_font();
            top - 4.0 - if self.is_turned(&text, bar) { width_of(&text, size) } else { size }
        };
        let reaches = rows.flat_map(|row| self.number_labels(frame, row, 0.0, bar)).map(reach);
        -reaches.fold(0.0, f64::min)
    }
}
