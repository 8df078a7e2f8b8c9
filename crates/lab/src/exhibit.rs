//! What an experiment shows: tables and figures as data, without any drawing.
//!
//! The functions here make what most experiments want of a [`View`]: the table of
//! published values, ours and the peers' with ratios; lines over a size; boxes. How they look is the
//! report's matter.

use crate::experiment::{Better, Metric};
use crate::results::{CellResult, Figures, OURS, Quantiles, View};
use crate::stats::Verdict;

/// Something to show.
#[derive(Clone, Debug)]
pub enum Exhibit {
    /// Rows and columns.
    Table(Table),
    /// A drawing.
    Figure(Figure),
}

/// How a table's entry is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// Ours is better, or all is well.
    Good,
    /// Ours is worse, or something is lost.
    Bad,
    /// Nothing measured, nothing concluded.
    Faint,
}

/// An entry of a table.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// What stands there.
    pub text: String,
    /// What hovering tells.
    pub hint: String,
    /// How it is meant.
    pub tone: Tone,
}

impl Entry {
    /// Text alone.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// Text with a meaning.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            hint: String::new(),
            tone,
        }
    }
}

/// Rows and columns; the first column says what the row is.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The head.
    pub columns: Vec<String>,
    /// As wide as the head.
    pub rows: Vec<Vec<Entry>>,
    /// How to read it.
    pub note: String,
}

/// A drawing with its axes.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: String,
    /// The vertical axis.
    pub y: String,
    /// What is drawn.
    pub plot: Plot,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Both axes logarithmic.
    LogLines(Vec<Line>),
    /// Quantiles by category, the vertical axis logarithmic.
    Boxes(Vec<BoxGroup>),
    /// Parts of a whole by category, from zero.
    Stack {
        /// The parts' names, lowest first.
        layers: Vec<String>,
        /// A category and its parts.
        bars: Vec<(String, Vec<f64>)>,
    },
    /// One value per category and name, from zero.
    Bars {
        /// The names within a category.
        names: Vec<String>,
        /// A category and its values.
        groups: Vec<(String, Vec<f64>)>,
    },
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// By x.
    pub points: Vec<Point>,
}

/// A point with its confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// Not below.
    pub low: f64,
    /// Not above.
    pub high: f64,
}

/// Boxes side by side.
#[derive(Clone, Debug)]
pub struct BoxGroup {
    /// The category.
    pub name: String,
    /// Name and quantiles.
    pub boxes: Vec<(String, Quantiles)>,
}

/// A number with three digits that say something.
pub fn number(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "–".into(),
        a if a.is_infinite() => "∞".into(),
        a if a >= 1e5 => format!("{:.0}k", value / 1e3),
        a if a >= 1e4 => format!("{:.1}k", value / 1e3),
        a if a >= 100.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `65536` as `64 KB`.
pub fn bytes_text(bytes: u64) -> String {
    match bytes {
        // Where a paper means thousands.
        b if b >= 1000 && b.is_multiple_of(1000) && !b.is_multiple_of(1 << 10) => {
            format!("{} kB", b / 1000)
        }
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MB", b >> 20),
        b if b >= 1 << 20 => format!("{:.2} MB", b as f64 / f64::from(1 << 20)),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KB", b >> 10),
        b if b >= 1 << 10 => format!("{:.1} KB", b as f64 / 1024.0),
        b => format!("{b} B"),
    }
}

/// A parameter's value for people; a `size` is bytes.
pub fn value_text(name: &str, value: &str) -> String {
    match (name, value.parse()) {
        ("size", Ok(bytes)) => bytes_text(bytes),
        ("fragment", Ok(bytes)) => format!("fragments {}", bytes_text(bytes)),
        ("nodes", Ok(1)) => "1 node".to_owned(),
        ("nodes", Ok(count)) => format!("{count} nodes"),
        ("rate", Ok(hz)) => format!("{hz} Hz"),
        _ => value.to_owned(),
    }
}

/// A case for people: `reliable 64 KB`.
pub fn case_words(case: &[(String, String)]) -> String {
    let words: Vec<String> = case.iter().map(|(n, v)| value_text(n, v)).collect();
    words.join(" ")
}

/// The table that every experiment has: a row per case; what the paper printed,
/// ours, then each other contestant with ours divided by it.
pub fn comparison(view: &View, metric: &'static Metric) -> Table {
    let contestants = view.contestants();
    // Beside the first of an experiment's tables; its figures name their units.
    let is_first = metric.name == view.metric().name;
    let has_published = is_first && view.cases().iter().any(|c| !view.published(c).is_empty());
    let mut columns = vec!["case".to_owned()];
    if has_published {
        columns.push("published".into());
    }
    for name in &contestants {
        columns.push((*name).to_owned());
        if *name != OURS {
            columns.push("ratio".into());
        }
    }
    let mut rows = Vec::new();
    for case in view.cases() {
        let mut row = vec![Entry::plain(case_words(case))];
        if has_published {
            let all = view.published(case).into_iter();
            let texts: Vec<String> = all.map(|p| format!("{}: {}", p.who, p.value)).collect();
            row.push(Entry::toned(texts.join("; "), Tone::Faint));
        }
        let ours = view.cell(case, OURS).and_then(|c| c.figures(metric.name));
        for name in &contestants {
            let cell = view.cell(case, name);
            row.push(figure_entry(cell, metric));
            if *name != OURS {
                let theirs = cell.and_then(|c| c.figures(metric.name));
                row.push(ratio_entry(view, case, name, metric, ours, theirs));
            }
        }
        // What has no such figure at all is no row of its table.
        let says_something = |name: &&str| {
            let cell = view.cell(case, name);
            cell.is_some_and(|c| c.figures(metric.name).is_some() || c.metrics.is_empty())
        };
        if contestants.iter().any(says_something) {
            rows.push(row);
        }
    }
    let statistic = crate::results::statistic_name(metric);
    Table {
        title: match metric.unit {
            "" => format!("{}, {statistic}", metric.name),
            unit => format!("{} ({unit}), {statistic}", metric.name),
        },
        columns,
        rows,
        note: format!(
            "Median over repeats of each repeat's {statistic}. Ratio: Pteros divided by the other; {} than 1 is better for Pteros; ~ is within noise or unclear.",
            match metric.better {
                Better::Higher => "more",
                _ => "less",
            }
        ),
    }
}

/// What a whole is made of: a row per cell that has parts, a column per part.
pub fn parts(view: &View, title: &str, metrics: &[&'static Metric]) -> Table {
    let mut columns = vec!["case".to_owned()];
    columns.extend(metrics.iter().map(|metric| metric.name.to_owned()));
    let has_parts = |cell: &&CellResult| metrics.iter().any(|m| cell.figures(m.name).is_some());
    let row = |cell: &CellResult| {
        let name = format!("{} {}", case_words(&cell.case), cell.contestant);
        let part = |metric: &&'static Metric| figure_entry(Some(cell), metric);
        let mut row = vec![Entry::plain(name)];
        row.extend(metrics.iter().map(part));
        row
    };
    let cells = view.cells.iter().filter(has_parts);
    Table {
        title: title.to_owned(),
        columns,
        rows: cells.map(row).collect(),
        note: String::new(),
    }
}

/// A cell's figure with its interval as hint, or why there is none.
pub fn figure_entry(cell: Option<&CellResult>, metric: &Metric) -> Entry {
    let Some(cell) = cell else {
        return Entry::toned("–", Tone::Faint);
    };
    let Some(figures) = cell.figures(metric.name) else {
        let why = cell.failure.as_ref();
        // It was measured, and has no such figure.
        if why.is_none() && !cell.metrics.is_empty() {
            return Entry::toned("–", Tone::Faint);
        }
        let text = match why {
            Some((true, _)) => "n/a",
            Some((false, _)) => "failed",
            None => "nothing",
        };
        return Entry {
            text: text.into(),
            hint: why.map_or_else(String::new, |f| f.1.clone()),
            tone: match why {
                Some((true, _)) => Tone::Faint,
                _ => Tone::Bad,
            },
        };
    };
    let mut text = number(figures.median());
    let mut tone = Tone::Plain;
    if let Some(delivery) = cell.delivery.filter(|d| d.lost() > 0) {
        text += &format!(" ({} of {} lost)", delivery.lost(), delivery.expected);
        tone = Tone::Bad;
    }
    let mut hint = figures.interval().map_or_else(String::new, |i| {
        format!(
            "{} to {} ({:.0} % of {} repeats)",
            number(i.low),
            number(i.high),
            i.confidence * 100.0,
            figures.repeats.len()
        )
    });
    if let Some(path) = &cell.path {
        hint += &format!("; by {}", path.replace('_', " "));
    }
    Entry { text, hint, tone }
}

fn ratio_entry(
    view: &View,
    case: &[(String, String)],
    other: &str,
    metric: &Metric,
    ours: Option<&Figures>,
    theirs: Option<&Figures>,
) -> Entry {
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Entry::toned("", Tone::Faint);
    };
    let ratio = number(ours.median() / theirs.median());
    match view.verdict(case, other, metric) {
        _ if other.starts_with(OURS) => Entry::toned(ratio, Tone::Faint),
        Verdict::Better => Entry::toned(ratio, Tone::Good),
        Verdict::Worse => Entry::toned(ratio, Tone::Bad),
        Verdict::Equal | Verdict::Unclear => Entry::toned(format!("~{ratio}"), Tone::Faint),
    }
}

/// Lines over a parameter that is a number: a line per contestant, of the cells
/// that `is_shown` lets pass.
pub fn lines(
    view: &View,
    title: impl Into<String>,
    over: &str,
    metric: &'static Metric,
    is_shown: impl Fn(&CellResult) -> bool,
) -> Exhibit {
    lines_by(view, title, over, metric, |cell| {
        is_shown(cell).then(|| cell.contestant.clone())
    })
}

/// The same with a line per name that `name` gives a cell; `None` leaves it out.
pub fn lines_by(
    view: &View,
    title: impl Into<String>,
    over: &str,
    metric: &'static Metric,
    name: impl Fn(&CellResult) -> Option<String>,
) -> Exhibit {
    let mut lines: Vec<Line> = Vec::new();
    for cell in &view.cells {
        let (Some(name), Some(figures)) = (name(cell), cell.figures(metric.name)) else {
            continue;
        };
        let Ok(x) = cell.get(over).parse() else {
            continue;
        };
        let y = figures.median();
        let interval = figures.interval();
        let point = Point {
            x,
            y,
            low: interval.map_or(y, |i| i.low),
            high: interval.map_or(y, |i| i.high),
        };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                name,
                points: vec![point],
            }),
        }
    }
    lines.sort_by_key(|line| !line.name.starts_with(OURS));
    Exhibit::Figure(Figure {
        title: title.into(),
        x: over.to_owned(),
        y: format!("{} ({})", metric.name, metric.unit),
        plot: Plot::LogLines(lines),
    })
}

/// Boxes of all samples: a group per value of `over`, a box per name that `name`
/// gives a cell; `None` leaves it out.
pub fn boxes(
    view: &View,
    title: impl Into<String>,
    over: &str,
    metric: &'static Metric,
    name: impl Fn(&CellResult) -> Option<String>,
) -> Exhibit {
    let mut groups: Vec<BoxGroup> = Vec::new();
    for cell in &view.cells {
        let pooled = cell.figures(metric.name).and_then(|f| f.pooled);
        let (Some(name), Some(quantiles)) = (name(cell), pooled) else {
            continue;
        };
        let category = value_text(over, cell.get(over));
        match groups.iter_mut().find(|group| group.name == category) {
            Some(group) => group.boxes.push((name, quantiles)),
            None => groups.push(BoxGroup {
                name: category,
                boxes: vec![(name, quantiles)],
            }),
        }
    }
    for group in &mut groups {
        group.boxes.sort_by_key(|(name, _)| !name.starts_with(OURS));
    }
    Exhibit::Figure(Figure {
        title: title.into(),
        x: over.to_owned(),
        y: format!("{} ({})", metric.name, metric.unit),
        plot: Plot::Boxes(groups),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_to_nothing_is_told_as_such() {
        for (value, text) in [
            (72.3 / 0.0, "∞"),
            (f64::NAN, "–"),
            (123_456.0, "123k"),
            (1.005, "1.00"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
