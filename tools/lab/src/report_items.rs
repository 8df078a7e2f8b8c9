//! Report items of experiments: tables and figures as data, without rendering.
//!
//! The functions create what most experiments show of a [`View`]: the comparison
//! table with published values and ratios, lines over a parameter, and boxes.

use crate::measurement::{Better, Metric};
use crate::results::{ConfigurationResult, MetricValues, OURS, Quantiles, View};
use crate::stats::Significance;

/// A table or a figure.
#[derive(Clone, Debug)]
pub enum ReportItem {
    Table(Table),
    Figure(Figure),
}

/// Emphasis of a table entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// None.
    #[default]
    Plain,
    /// Pteros is better, or there is no loss.
    Good,
    /// Pteros is worse, or there is loss.
    Bad,
    /// Without value or significance.
    Faint,
}

/// The text of an aim that is missed.
const NOT_MET: &str = "not met";

#[derive(Clone, Debug, Default)]
pub struct TableEntry {
    pub text: String,
    /// Its tooltip.
    pub hint: String,
    /// Its emphasis.
    pub tone: Tone,
}

impl TableEntry {
    /// An entry without emphasis.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::with_tone(text, Tone::Plain)
    }

    /// An entry that says whether an aim is met.
    pub fn aim(is_met: bool) -> Self {
        match is_met {
            true => Self::with_tone("met", Tone::Good),
            false => Self::with_tone(NOT_MET, Tone::Bad),
        }
    }

    /// Whether it says that an aim is not met.
    pub fn is_missed_aim(&self) -> bool {
        self.text == NOT_MET
    }

    /// An entry with emphasis.
    pub fn with_tone(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            hint: String::new(),
            tone,
        }
    }
}

/// A table. The first column names the row.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub title: String,
    /// Column headings.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<TableEntry>>,
    /// An explanation below.
    pub note: String,
}

/// A figure with its axes.
#[derive(Clone, Debug)]
pub struct Figure {
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    pub plot: Plot,
}

#[derive(Clone, Debug)]
pub enum Plot {
    /// Lines on logarithmic axes.
    LogLines(Vec<Line>),
    /// Box plots by category on a logarithmic vertical axis.
    Boxes(Vec<BoxGroup>),
    /// Stacked bars by category.
    Stack {
        /// Names of the layers, lowest first.
        layers: Vec<String>,
        /// Categories and their layers.
        bars: Vec<(String, Vec<f64>)>,
    },
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points in the order of x.
    pub points: Vec<Point>,
}

/// A point with its confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The parameter.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Box plots of one category.
#[derive(Clone, Debug)]
pub struct BoxGroup {
    /// The category.
    pub name: String,
    /// Names and quantiles.
    pub boxes: Vec<(String, Quantiles)>,
}

/// A number with three significant digits.
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

/// Bytes with a unit: `65536` as `64 KB`.
pub fn bytes_text(bytes: u64) -> String {
    match bytes {
        // For papers with kilobytes of 1000 bytes.
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

/// A parameter's value as text. `size` is in bytes.
pub fn value_text(name: &str, value: &str) -> String {
    match (name, value.parse()) {
        ("size", Ok(bytes)) => bytes_text(bytes),
        ("fragment", Ok(bytes)) => format!("fragments {}", bytes_text(bytes)),
        ("nodes", Ok(1)) => "1 node".to_owned(),
        ("nodes", Ok(count)) => format!("{count} nodes"),
        ("rate", Ok(hz)) => format!("{hz} Hz"),
        // Per thousand.
        ("loss", Ok(0)) => "no loss".to_owned(),
        ("loss", Ok(lost)) => format!("{} % loss", lost as f64 / 10.0),
        ("processes", Ok(count)) => format!("{count} processes"),
        ("subscriptions", Ok(count)) => format!("N = {count}"),
        ("work us", Ok(us)) => format!("{us} us"),
        ("timers", Ok(count)) => format!("{count} timers"),
        _ => value.to_owned(),
    }
}

/// A case as text: `reliable 64 KB`.
pub fn case_label(case: &[(String, String)]) -> String {
    let words: Vec<String> = case.iter().map(|(n, v)| value_text(n, v)).collect();
    words.join(" ")
}

/// The comparison table of an experiment. A row per case: published values, Pteros,
/// and every other implementation with the ratio of Pteros to it.
pub fn comparison(view: &View, metric: &'static Metric) -> Table {
    let implementations = view.implementations();
    // Published values stand in the first table, with their units.
    let is_first = metric.name == view.metric().name;
    let has_published = is_first && view.cases().iter().any(|c| !view.published(c).is_empty());
    let mut columns = vec!["case".to_owned()];
    if has_published {
        columns.push("published".into());
    }
    for name in &implementations {
        columns.push((*name).to_owned());
        if *name != OURS {
            columns.push("ratio".into());
        }
    }
    let mut rows = Vec::new();
    for case in view.cases() {
        let mut row = vec![TableEntry::plain(case_label(case))];
        if has_published {
            let all = view.published(case).into_iter();
            let texts: Vec<String> = all
                .map(|p| format!("{}: {}", p.implementation, p.value))
                .collect();
            row.push(TableEntry::with_tone(texts.join("; "), Tone::Faint));
        }
        let ours = view
            .configuration(case, OURS)
            .and_then(|c| c.metric_values(metric.name));
        for name in &implementations {
            let configuration = view.configuration(case, name);
            row.push(value_entry(configuration, metric));
            if *name != OURS {
                let theirs = configuration.and_then(|c| c.metric_values(metric.name));
                row.push(ratio_entry(view, case, name, metric, ours, theirs));
            }
        }
        // Cases without this metric have no row.
        let says_something = |name: &&str| {
            let configuration = view.configuration(case, name);
            configuration
                .is_some_and(|c| c.metric_values(metric.name).is_some() || c.metrics.is_empty())
        };
        if implementations.iter().any(says_something) {
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

/// A table of components: a row per configuration, a column per metric.
pub fn parts(view: &View, title: &str, metrics: &[&'static Metric]) -> Table {
    let mut columns = vec!["case".to_owned()];
    columns.extend(metrics.iter().map(|metric| metric.name.to_owned()));
    let has_parts = |configuration: &&ConfigurationResult| {
        metrics
            .iter()
            .any(|m| configuration.metric_values(m.name).is_some())
    };
    let row = |configuration: &ConfigurationResult| {
        let name = format!(
            "{} {}",
            case_label(&configuration.case),
            configuration.implementation
        );
        let part = |metric: &&'static Metric| value_entry(Some(configuration), metric);
        let mut row = vec![TableEntry::plain(name)];
        row.extend(metrics.iter().map(part));
        row
    };
    let configurations = view.configurations.iter().filter(has_parts);
    Table {
        title: title.to_owned(),
        columns,
        rows: configurations.map(row).collect(),
        note: String::new(),
    }
}

/// A configuration's value with its interval as tooltip, or why there is none.
pub fn value_entry(configuration: Option<&ConfigurationResult>, metric: &Metric) -> TableEntry {
    let Some(configuration) = configuration else {
        return TableEntry::with_tone("–", Tone::Faint);
    };
    let Some(values) = configuration.metric_values(metric.name) else {
        let why = configuration.failure.as_ref();
        // It was measured, but not with this metric.
        if why.is_none() && !configuration.metrics.is_empty() {
            return TableEntry::with_tone("–", Tone::Faint);
        }
        let text = match why {
            Some((true, _)) => "n/a",
            Some((false, _)) => "failed",
            None => "nothing",
        };
        return TableEntry {
            text: text.into(),
            hint: why.map_or_else(String::new, |f| f.1.clone()),
            tone: match why {
                Some((true, _)) => Tone::Faint,
                _ => Tone::Bad,
            },
        };
    };
    let mut text = number(values.median());
    let mut tone = Tone::Plain;
    if let Some(delivery) = configuration.delivery.filter(|d| d.lost() > 0) {
        text += &format!(" ({} of {} lost)", delivery.lost(), delivery.expected);
        tone = Tone::Bad;
    }
    let mut hint = values.interval().map_or_else(String::new, |i| {
        format!(
            "{} to {} ({:.0} % of {} repeats)",
            number(i.low),
            number(i.high),
            i.confidence * 100.0,
            values.repeats.len()
        )
    });
    if let Some(path) = &configuration.path {
        hint += &format!("; by {}", path.replace('_', " "));
    }
    TableEntry { text, hint, tone }
}

fn ratio_entry(
    view: &View,
    case: &[(String, String)],
    other: &str,
    metric: &Metric,
    ours: Option<&MetricValues>,
    theirs: Option<&MetricValues>,
) -> TableEntry {
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return TableEntry::with_tone("", Tone::Faint);
    };
    let ratio = number(ours.median() / theirs.median());
    match view.significance(case, other, metric) {
        _ if other.starts_with(OURS) => TableEntry::with_tone(ratio, Tone::Faint),
        Significance::Better => TableEntry::with_tone(ratio, Tone::Good),
        Significance::Worse => TableEntry::with_tone(ratio, Tone::Bad),
        Significance::Equal | Significance::Unclear => {
            TableEntry::with_tone(format!("~{ratio}"), Tone::Faint)
        }
    }
}

/// Lines over a numeric parameter, one per implementation, of the configurations
/// that `is_shown` selects.
pub fn lines(
    view: &View,
    title: impl Into<String>,
    over: &str,
    metric: &'static Metric,
    is_shown: impl Fn(&ConfigurationResult) -> bool,
) -> ReportItem {
    lines_by(view, title, over, metric, |configuration| {
        is_shown(configuration).then(|| configuration.implementation.clone())
    })
}

/// The same with the line's name from `name`. `None` omits the configuration.
pub fn lines_by(
    view: &View,
    title: impl Into<String>,
    over: &str,
    metric: &'static Metric,
    name: impl Fn(&ConfigurationResult) -> Option<String>,
) -> ReportItem {
    let mut lines: Vec<Line> = Vec::new();
    for configuration in &view.configurations {
        let (Some(name), Some(values)) = (
            name(configuration),
            configuration.metric_values(metric.name),
        ) else {
            continue;
        };
        let Ok(x) = configuration.get(over).parse() else {
            continue;
        };
        let y = values.median();
        let interval = values.interval();
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
    ReportItem::Figure(Figure {
        title: title.into(),
        x: over.to_owned(),
        y: format!("{} ({})", metric.name, metric.unit),
        plot: Plot::LogLines(lines),
    })
}

/// Box plots of all samples: a group per value of `over`, a box per `name`. `None`
/// omits the configuration.
pub fn boxes(
    view: &View,
    title: impl Into<String>,
    over: &str,
    metric: &'static Metric,
    name: impl Fn(&ConfigurationResult) -> Option<String>,
) -> ReportItem {
    let mut groups: Vec<BoxGroup> = Vec::new();
    for configuration in &view.configurations {
        let pooled = configuration
            .metric_values(metric.name)
            .and_then(|f| f.pooled);
        let (Some(name), Some(quantiles)) = (name(configuration), pooled) else {
            continue;
        };
        let category = value_text(over, configuration.get(over));
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
    ReportItem::Figure(Figure {
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
    fn a_ratio_to_zero_is_reported_as_undefined() {
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
