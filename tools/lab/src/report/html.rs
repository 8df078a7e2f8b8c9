//! Report as one HTML file. It fetches nothing, works on phones, and follows the
//! reader's light or dark theme. Tooltips show what a table entry rests on.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::{Report, rerun, sentences, svg, warnings};
use crate::report_items::{ReportItem, Table, Tone, number};
use crate::results::View;

/// Maximum characters of a numeric entry, for example `12.3 (10 of 1000 lost)`.
const NUMBER_MAX: usize = 28;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn page(report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Pteros lab" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Pteros lab" }
                    p {
                        "Four papers on ROS 2, reproduced beside other stacks in the same run."
                        "Published values come from other machines and are context only. Compare Pteros with the other stacks."
                    }
                }
                main {
                    (findings(report))
                    (missing(report))
                    nav {
                        @for view in &report.views {
                            a href=(format!("#{}", anchor(view))) { (view.experiment.id) " " (view.experiment.title) }
                        }
                    }
                    @for view in &report.views {
                        (experiment(view))
                    }
                    (environment(report))
                }
            }
        }
    };
    page.into_string()
}

fn anchor(view: &View) -> String {
    view.experiment.id.replace('.', "-")
}

fn findings(report: &Report) -> Markup {
    html! {
        section id="findings" {
            h2 { "Where Pteros is worse than a peer" }
            p { (report.verdict()) }
            @if !report.findings.is_empty() {
                div class="scroll" { table {
                    thead { tr { th { "experiment" } th { "case" } th { "metric" } th class="num" { "Pteros" } th { "peer" } th class="num" { "peer value" } th class="num" { "ratio" } } }
                    tbody {
                        @for f in &report.findings {
                            tr {
                                td { (f.experiment) }
                                td { (f.label) }
                                td { (f.metric) " (" (f.unit) ")" }
                                td class="num" { (number(f.ours)) }
                                td { (f.peer) }
                                td class="num" { (number(f.theirs)) }
                                td class=(if f.is_judged { "num bad" } else { "num faint" }) { (number(f.ours / f.theirs)) }
                            }
                        }
                    }
                } }
                p class="faint" {
                    "All repeats of Pteros are worse than all repeats of the peer, and the medians differ by more than 5 %. "
                    "Pale ratios are not judged: there are fewer than three repeats. "
                    "For equal implementations that happens by chance in one configuration of twenty with 3 repeats, in one of 250 with 5."
                }
            }
        }
    }
}

fn missing(report: &Report) -> Markup {
    let (missing, denied) = (
        report.environment_texts("missing"),
        report.environment_texts("denied"),
    );
    html! {
        @if !(missing.is_empty() && denied.is_empty()) {
            section {
                h2 { "What is missing, and why" }
                ul {
                    @for text in missing.iter().chain(&denied) { li { (text) } }
                }
            }
        }
    }
}

fn experiment(view: &View) -> Markup {
    let experiment = view.experiment;
    html! {
        section id=(anchor(view)) {
            h2 { (experiment.id) " · " (experiment.title) }
            p { (experiment.question) }
            p class="faint" { (experiment.paper.citation()) "; " (experiment.reproduces) ". " (view.extent.name()) " run." }
            @for warning in warnings(view) { p class="warning" { (warning) } }
            @for sentence in sentences(view) { p { (sentence) } }
            @for item in (experiment.report_items)(view) {
                @match item {
                    ReportItem::Table(shown) => (table(&shown)),
                    ReportItem::Figure(figure) => @if let Some(drawn) = svg::draw(&figure) { (drawn) },
                }
            }
            (notes(view))
            p {
                "Again: " code { (rerun(experiment, view)) } ". "
                a href=(format!("{}/samples.csv", experiment.id)) { "Raw samples" } ", "
                a href="results.json" { "results" } "."
            }
        }
    }
}

fn notes(view: &View) -> Markup {
    let mut all: Vec<String> = Vec::new();
    for configuration in &view.configurations {
        let failure = configuration.failure.iter().map(|(_, why)| why);
        for note in configuration.notes.iter().chain(failure) {
            let text = format!("{}: {note}", configuration.implementation);
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    html! {
        @if !all.is_empty() {
            details {
                summary { (all.len()) " remarks" }
                ul { @for note in &all { li { (note) } } }
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        h3 { (table.title) }
        div class="scroll" { table {
            thead { tr {
                @for (index, column) in table.columns.iter().enumerate() {
                    th class=(class(index, column, Tone::Plain)) { (column) }
                }
            } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (index, entry) in row.iter().enumerate() {
                            td class=(class(index, &entry.text, entry.tone)) title=[(!entry.hint.is_empty()).then_some(&entry.hint)] { (entry.text) }
                        }
                    }
                }
            }
        } }
        @if !table.note.is_empty() { p class="faint" { (table.note) } }
    }
}

/// CSS class: numbers are right-aligned, long texts left-aligned.
fn class(index: usize, text: &str, tone: Tone) -> String {
    let is_long = text.chars().count() > NUMBER_MAX || text == "published";
    let align = match (index, is_long) {
        (0, false) => "case",
        (0, true) => "",
        (_, true) => "text",
        (_, false) => "num",
    };
    let tone = match tone {
        Tone::Plain => "",
        Tone::Good => " good",
        Tone::Bad => " bad",
        Tone::Faint => " faint",
    };
    format!("{align}{tone}")
}

fn environment(report: &Report) -> Markup {
    html! {
        section id="environment" {
            h2 { "Measured on" }
            div class="scroll" { table { tbody {
                @for (name, value) in report.environment.as_object().into_iter().flatten() {
                    @if !["missing", "denied"].contains(&name.as_str()) {
                        tr { td { (name) } td { (words(value)) } }
                    }
                }
            } } }
        }
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join("; "),
        Value::Object(map) => {
            let pair = |(name, value): (&String, &Value)| format!("{name}: {}", words(value));
            map.iter().map(pair).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}
