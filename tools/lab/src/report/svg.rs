//! Figures as SVG. Colours are variables of the page, so that they follow its
//! theme.

use maud::{Markup, PreEscaped, html};

use crate::report_items::{BoxGroup, Figure, Line, Plot, bytes_text, number};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Space for labels that are readable on a phone (style.css).
const LEFT: f64 = 92.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 60.0;
/// Number of colours of the page.
const COLOURS: usize = 8;

/// The figure with its legend. `None` without data.
pub fn draw(figure: &Figure) -> Option<Markup> {
    let (body, names) = match &figure.plot {
        Plot::LogLines(lines) => (
            log_lines(lines, figure),
            lines.iter().map(|l| l.name.clone()).collect(),
        ),
        Plot::Boxes(groups) => boxes(groups),
        Plot::Stack { layers, bars } => (stack(bars), layers.clone()),
    };
    let drawn = html! {
        figure {
            figcaption { (figure.title) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(figure.title) {
                    (PreEscaped(&body))
                    text class="axis" x=(WIDTH / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" { (figure.x) }
                    text class="axis" x="18" y=(HEIGHT / 2.0) text-anchor="middle" transform=(format!("rotate(-90 18 {})", HEIGHT / 2.0)) { (figure.y) }
                }
                (legend(&names))
        }
    };
    (!body.is_empty()).then_some(drawn)
}

fn legend(names: &[String]) -> Markup {
    html! {
        ul class="legend" {
            @for (index, name) in names.iter().enumerate() {
                li { span class=(format!("swatch f{}", index % COLOURS)) {} (name) }
            }
        }
    }
}

/// An axis from values to coordinates, linear or logarithmic.
#[derive(Clone, Copy)]
struct Scale {
    is_log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn log(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let values: Vec<f64> = values.filter(|v| *v > 0.0 && v.is_finite()).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        // A single value is in the middle.
        let (low, high) = if low == high {
            (low / 2.0, high * 2.0)
        } else {
            (low, high)
        };
        Some(Self {
            is_log: true,
            low,
            high,
            from,
            to,
        })
    }

    /// The same between round numbers, so that the axis has labels.
    fn log_round(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let mut scale = Self::log(values, from, to)?;
        let decade = |value: f64| 10f64.powf(value.log10().floor());
        let steps = |value| [1.0, 2.0, 5.0, 10.0].map(|step| step * decade(value));
        let below = steps(scale.low).into_iter().rev();
        let mut below = below.filter(|step| *step <= scale.low * 1.001);
        scale.low = below.next().unwrap_or(scale.low);
        let mut above = steps(scale.high).into_iter();
        scale.high = above
            .find(|step| *step >= scale.high * 0.999)
            .unwrap_or(scale.high);
        Some(scale)
    }

    fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let high = values.filter(|v| v.is_finite()).reduce(f64::max)?;
        let high = if high > 0.0 { high * 1.05 } else { 1.0 };
        Some(Self {
            is_log: false,
            low: 0.0,
            high,
            from,
            to,
        })
    }

    fn place(self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    fn ticks(self) -> Vec<f64> {
        if !self.is_log {
            let step = 10f64.powf((self.high / 4.0).log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0]
                .map(|m| m * step)
                .into_iter()
                .find(|s| self.high / s <= 6.0)
                .unwrap_or(step * 10.0);
            return (0..8)
                .map(|i| f64::from(i) * step)
                .filter(|v| *v <= self.high)
                .collect();
        }
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let wide = self.high / self.low > 100.0;
        let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        decades
            .flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)))
            .filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001)
            .collect()
    }
}

fn y_axis(scale: Scale) -> String {
    let mut out = String::new();
    for tick in scale.ticks() {
        let y = scale.place(tick);
        out += &format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"></line>\
             <text class=\"tick\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(tick)
        );
    }
    out
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", trimmed(v / 1e6)),
        v if v >= 1e3 => format!("{}k", trimmed(v / 1e3)),
        v => trimmed(v),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn log_lines(lines: &[Line], figure: &Figure) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Scale::log(points().map(|p| p.x), LEFT + 10.0, WIDTH - RIGHT - 10.0);
    let y = Scale::log_round(
        points().flat_map(|p| [p.y, p.low, p.high]),
        HEIGHT - BOTTOM,
        TOP,
    );
    let (Some(x), Some(y)) = (x, y) else {
        return String::new();
    };
    let mut out = y_axis(y);
    let mut shown: Vec<f64> = points().map(|p| p.x).collect();
    shown.sort_by(f64::total_cmp);
    shown.dedup();
    let every = shown.len().div_ceil(7).max(1);
    for value in shown.iter().step_by(every) {
        let label = match figure.x.as_str() {
            "size" | "fragment" => bytes_text(*value as u64),
            _ => short(*value),
        };
        out += &category(x.place(*value), &label);
    }
    for (index, line) in lines.iter().enumerate() {
        let colour = index % COLOURS;
        let mut all: Vec<_> = line.points.clone();
        all.sort_by(|a, b| a.x.total_cmp(&b.x));
        let path: Vec<String> = all
            .iter()
            .map(|p| format!("{:.1},{:.1}", x.place(p.x), y.place(p.y)))
            .collect();
        out += &format!(
            "<polyline class=\"line c{colour}\" points=\"{}\"></polyline>",
            path.join(" ")
        );
        for point in &all {
            let (at, mid) = (x.place(point.x), y.place(point.y));
            out += &format!(
                "<line class=\"c{colour}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"></line>\
                 <circle class=\"f{colour}\" cx=\"{at:.1}\" cy=\"{mid:.1}\" r=\"3\"><title>{}: {}</title></circle>",
                y.place(point.low),
                y.place(point.high),
                escape(&line.name),
                number(point.y)
            );
        }
    }
    out
}

/// The label below a coordinate of the horizontal axis.
fn category(x: f64, label: &str) -> String {
    format!(
        "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        HEIGHT - BOTTOM + 20.0,
        escape(label)
    )
}

/// Width of a group and of each of its `parts`.
fn slots(groups: usize, parts: usize) -> (f64, f64) {
    let group = (WIDTH - LEFT - RIGHT) / groups.max(1) as f64;
    (group, group * 0.8 / parts.max(1) as f64)
}

fn boxes(groups: &[BoxGroup]) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in groups.iter().flat_map(|group| &group.boxes) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let all = groups.iter().flat_map(|group| &group.boxes);
    let scale = Scale::log_round(
        all.flat_map(|(_, q)| [q.min, q.p50, q.p99]),
        HEIGHT - BOTTOM,
        TOP,
    );
    let Some(scale) = scale else {
        return (String::new(), names);
    };
    let (wide, slot) = slots(groups.len(), names.len());
    let mut out = y_axis(scale);
    for (at, group) in groups.iter().enumerate() {
        let left = LEFT + wide * at as f64 + wide * 0.1;
        out += &category(left + wide * 0.4, &group.name);
        for (name, q) in &group.boxes {
            let index = names.iter().position(|n| n == name).unwrap_or(0);
            let x = left + slot * index as f64;
            let y = |value| scale.place(value);
            out += &format!(
                "<g class=\"c{0} f{0}\"><title>{1}: median {2}, quartiles {3} and {4}, p95 {5}, of {6}</title>\
                 <line x1=\"{7:.1}\" x2=\"{7:.1}\" y1=\"{8:.1}\" y2=\"{9:.1}\"></line>\
                 <rect class=\"box\" x=\"{10:.1}\" y=\"{11:.1}\" width=\"{12:.1}\" height=\"{13:.1}\"></rect>\
                 <line class=\"mid\" x1=\"{10:.1}\" x2=\"{14:.1}\" y1=\"{15:.1}\" y2=\"{15:.1}\"></line></g>",
                index % COLOURS,
                escape(name),
                number(q.p50),
                number(q.p25),
                number(q.p75),
                number(q.p95),
                q.count,
                x + slot * 0.45,
                y(q.min),
                y(q.p95),
                x,
                y(q.p75),
                slot * 0.9,
                (y(q.p25) - y(q.p75)).max(1.0),
                x + slot * 0.9,
                y(q.p50),
            );
        }
    }
    (out, names)
}

fn stack(bars: &[(String, Vec<f64>)]) -> String {
    let sums = bars.iter().map(|(_, parts)| parts.iter().sum());
    let Some(scale) = Scale::from_zero(sums, HEIGHT - BOTTOM, TOP) else {
        return String::new();
    };
    let (wide, slot) = slots(bars.len(), 1);
    let mut out = y_axis(scale);
    for (at, (name, parts)) in bars.iter().enumerate() {
        let left = LEFT + wide * at as f64 + wide * 0.1;
        out += &category(left + wide * 0.4, name);
        let mut below = 0.0;
        for (index, part) in parts.iter().enumerate() {
            out += &bar(
                scale,
                left,
                slot,
                below,
                below + part,
                index,
                &number(*part),
            );
            below += part;
        }
    }
    out
}

fn bar(scale: Scale, x: f64, width: f64, from: f64, to: f64, index: usize, hint: &str) -> String {
    let (bottom, top) = (scale.place(from), scale.place(to));
    format!(
        "<rect class=\"f{}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>{hint}</title></rect>",
        index % COLOURS,
        (bottom - top).max(0.5)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_labels_for_any_range() {
        for (low, high) in [(237.0, 344.0), (1.0, 1.0), (0.3, 4000.0), (999.0, 1001.0)] {
            let scale = Scale::log_round([low, high].into_iter(), 300.0, 10.0);
            let ticks = scale.expect("values").ticks();
            assert!(ticks.len() >= 2, "{low} to {high}: {ticks:?}");
        }
    }
}
