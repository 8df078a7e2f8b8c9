//! A run that was written down by hand, read back and reported.

use std::path::PathBuf;

use pteros_lab::compare::compare;
use pteros_lab::experiment::{Cell, Delivery, Extent, Measured};
use pteros_lab::experiments;
use pteros_lab::report::{Report, page, summary};
use pteros_lab::store::{Outcome, Store};

/// A folder of the test's own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("pteros-lab-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn cell(size: u64, contestant: &'static str) -> Cell {
    Cell {
        case: vec![
            ("situation", "local".into()),
            ("qos", "reliable".into()),
            ("size", size.to_string()),
        ],
        contestant,
        seconds: 1.0,
    }
}

/// Three repeats with these medians, each of three samples.
fn write(store: &Store, size: u64, contestant: &'static str, medians: [f64; 3], lost: u64) {
    let experiment = experiments::ALL[0];
    let mut journal = store
        .append(experiment, &["situation", "qos", "size"])
        .expect("a journal");
    for (repeat, median) in medians.into_iter().enumerate() {
        let measured = Measured {
            samples: vec![("latency", vec![median + 1.0, median, median - 1.0])],
            delivery: Some(Delivery {
                expected: 3,
                received: 3 - lost,
                ..Delivery::default()
            }),
            ..Measured::default()
        };
        let outcome = Outcome::Measured(measured);
        let added = journal.add(experiment, &cell(size, contestant), repeat, 0.0, outcome);
        added.expect("written");
    }
}

fn run(folder: &Folder, ours: [f64; 3]) -> Store {
    let store = Store::create(&folder.0, Extent::Quick).expect("a store");
    write(&store, 256, "pteros", ours, 0);
    write(&store, 256, "cyclone", [80.0, 81.0, 82.0], 1);
    write(&store, 1024, "pteros", [50.0, 51.0, 52.0], 0);
    write(&store, 1024, "cyclone", [90.0, 91.0, 92.0], 0);
    store
}

#[test]
fn where_ours_is_worse_stands_first_and_the_page_needs_nothing_else() {
    let folder = Folder::new("page");
    let store = run(&folder, [100.0, 101.0, 102.0]);
    let report = Report::load(&store).expect("a report");
    assert_eq!(report.findings.len(), 1);
    let found = &report.findings[0];
    assert_eq!((found.peer.as_str(), found.ours), ("cyclone", 101.0));
    assert!(found.case.contains("size=256"), "{}", found.case);
    let text = summary(&report);
    assert!(text.contains("Worse than a peer in 1 cells"), "{text}");
    assert!(text.contains("(3 of 9 lost)"), "{text}");
    report.write(&store).expect("written");

    let page = page(&report);
    assert!(page.find("Where Pteros is worse") < page.find("m16.1 ·"));
    // XML once its one kind of void element is closed: well-formed.
    let head = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    let mut closed = String::new();
    for part in head.split_inclusive('>') {
        let is_void = part.trim_start().starts_with("<meta");
        closed += &if is_void {
            part.replace('>', "/>")
        } else {
            part.to_owned()
        };
    }
    let document = roxmltree::Document::parse(&closed).expect("well-formed");
    let figures = document.descendants().filter(|n| n.has_tag_name("svg"));
    assert!(figures.count() >= 2);
    let links = document.descendants().filter_map(|n| n.attribute("href"));
    for link in links {
        let is_inside = link.starts_with('#') || !link.contains(':');
        assert!(is_inside, "{link} leads outside");
    }
}

#[test]
fn a_regression_between_two_runs_is_counted() {
    let (before, after) = (Folder::new("before"), Folder::new("after"));
    let old = run(&before, [70.0, 71.0, 72.0]);
    let new = run(&after, [100.0, 101.0, 102.0]);
    let found = compare(&old, &new).expect("compared");
    assert_eq!((found.worse, found.better, found.cells), (1, 0, 2));
    let back = compare(&new, &old).expect("compared");
    assert_eq!((back.worse, back.better), (0, 1));
}

#[test]
fn samples_of_a_repeat_that_was_never_finished_do_not_count() {
    let folder = Folder::new("torn");
    let store = run(&folder, [100.0, 101.0, 102.0]);
    let samples = folder.0.join("m16.1/samples.csv");
    let whole = std::fs::read_to_string(&samples).expect("samples");
    std::fs::write(&samples, format!("{whole}local,reliable,256,pte")).expect("written");
    let read = store.samples("m16.1").expect("samples");
    assert_eq!(read.len(), 36);
    write(&store, 4096, "pteros", [1.0, 1.0, 1.0], 0);
    assert_eq!(store.samples("m16.1").expect("samples").len(), 45);
}
