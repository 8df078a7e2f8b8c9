//! A run written by the test, read back and reported.

use pteros_lab::compare::compare;
use pteros_lab::experiments;
use pteros_lab::measurement::{Configuration, Delivery, Extent, Measurement};
use pteros_lab::report::{Report, page, summary};
use pteros_lab::store::{RepeatOutcome, Store};
use pteros_test_support::folder::Folder;

fn configuration(size: u64, implementation: &'static str) -> Configuration {
    Configuration {
        case: vec![
            ("situation", "local".into()),
            ("qos", "reliable".into()),
            ("size", size.to_string()),
        ],
        implementation,
        seconds: 1.0,
    }
}

/// Repeats with these medians, each of three samples.
fn write(store: &Store, size: u64, implementation: &'static str, medians: &[f64], lost: u64) {
    let experiment = experiments::ALL[0];
    let mut journal = store
        .append(
            experiment.id,
            experiment.metrics,
            &["situation", "qos", "size"],
        )
        .expect("a journal");
    for (repeat, &median) in medians.iter().enumerate() {
        let measured = Measurement {
            samples: vec![("latency", vec![median + 1.0, median, median - 1.0])],
            delivery: Some(Delivery {
                expected: 3,
                received: 3 - lost,
                ..Delivery::default()
            }),
            ..Measurement::default()
        };
        let outcome = RepeatOutcome::Measured(measured);
        let added = journal.add(&configuration(size, implementation), repeat, 0.0, outcome);
        added.expect("written");
    }
}

fn run(folder: &Folder, ours: [f64; 3]) -> Store {
    let store = Store::create(folder.path(), Extent::Quick).expect("a store");
    write(&store, 256, "pteros", &ours, 0);
    write(&store, 256, "cyclone", &[80.0, 81.0, 82.0], 1);
    write(&store, 1024, "pteros", &[50.0, 51.0, 52.0], 0);
    write(&store, 1024, "cyclone", &[90.0, 91.0, 92.0], 0);
    store
}

#[test]
fn rows_where_pteros_is_worse_come_first_and_the_page_is_self_contained() {
    let folder = Folder::new("page");
    let store = run(&folder, [100.0, 101.0, 102.0]);
    let report = Report::load(&store).expect("a report");
    assert_eq!(report.findings.len(), 1);
    let found = &report.findings[0];
    assert_eq!((found.peer.as_str(), found.ours), ("cyclone", 101.0));
    assert!(found.case.contains("size=256"), "{}", found.case);
    let text = summary(&report);
    for part in [
        "Worse than a peer: 1\u{1b}",
        "(ratio 1.25)",
        "worse than a peer's: 1; aims missed: 0.",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("(3 of 9 lost)"), "{text}");
    report.write(&store).expect("written");

    let page = page(&report);
    assert!(page.find("Where Pteros is worse") < page.find("m16.1 ·"));
    // Well-formed XML once the void elements are closed.
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
    let values = document.descendants().filter(|n| n.has_tag_name("svg"));
    assert!(values.count() >= 2);
    let links = document.descendants().filter_map(|n| n.attribute("href"));
    for link in links {
        let is_inside = link.starts_with('#') || !link.contains(':');
        assert!(is_inside, "{link} leads outside");
    }
}

/// Found in a report of one repeat: it said that nothing was worse, below a table in which
/// Pteros was three times slower. Plug-ins were compared with nothing.
#[test]
fn a_run_with_few_repeats_is_not_judged_and_lists_what_is_behind() {
    for (ours, peer) in [
        ("pteros", "cyclone"),
        ("rclcpp/pteros", "rclcpp/fastrtps"),
        ("pteros-wheel", "rclpy/fastrtps"),
    ] {
        let folder = Folder::new("few");
        let store = Store::create(folder.path(), Extent::Quick).expect("a store");
        write(&store, 256, ours, &[300.0, 310.0], 0);
        write(&store, 256, peer, &[100.0, 101.0], 0);
        // Neither a peer of it nor judged.
        write(&store, 256, "pteros-udp", &[50.0], 0);
        write(&store, 256, "floor", &[10.0], 0);
        write(&store, 256, "rclpy/pteros", &[20.0], 0);
        let report = Report::load(&store).expect("a report");
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|f| (f.peer.as_str(), f.is_judged))
            .collect();
        assert_eq!(found, [(peer, false)], "{ours}");
        let verdict = report.verdict();
        let expected = "not judged, with fewer than 3 repeats: 1 behind by the medians";
        assert!(verdict.contains(expected), "{verdict}");
        assert!(summary(&report).contains("(ratio 3.03)"));
    }
}

#[test]
fn a_regression_between_two_runs_is_counted() {
    let (before, after) = (Folder::new("before"), Folder::new("after"));
    let old = run(&before, [70.0, 71.0, 72.0]);
    let new = run(&after, [100.0, 101.0, 102.0]);
    let found = compare(&old, &new).expect("compared");
    assert_eq!((found.worse, found.better, found.configurations), (1, 0, 2));
    let back = compare(&new, &old).expect("compared");
    assert_eq!((back.worse, back.better), (0, 1));
}

#[test]
fn samples_of_a_repeat_that_was_never_finished_do_not_count() {
    let folder = Folder::new("torn");
    let store = run(&folder, [100.0, 101.0, 102.0]);
    let samples = folder.path().join("m16.1/samples.csv");
    let whole = std::fs::read_to_string(&samples).expect("samples");
    std::fs::write(&samples, format!("{whole}local,reliable,256,pte")).expect("written");
    let read = store.samples("m16.1").expect("samples");
    assert_eq!(read.len(), 36);
    write(&store, 4096, "pteros", &[1.0, 1.0, 1.0], 0);
    assert_eq!(store.samples("m16.1").expect("samples").len(), 45);
}

/// The writes of a run in order: to the samples (`false`) or the journal (`true`).
fn writes(folder: &Folder) -> Vec<(bool, Vec<u8>)> {
    let (mut samples, mut lines) = (0, 0);
    let mut all = Vec::new();
    let store = Store::create(folder.path(), Extent::Quick).expect("a store");
    let mut grown = |all: &mut Vec<(bool, Vec<u8>)>| {
        let read = |name| std::fs::read(folder.path().join("m16.1").join(name)).expect("a file");
        let (now, journal) = (read("samples.csv"), read("measured.jsonl"));
        all.push((false, now[samples..].to_vec()));
        all.push((true, journal[lines..].to_vec()));
        (samples, lines) = (now.len(), journal.len());
    };
    let experiment = experiments::ALL[0];
    drop(store.append(experiment.id, experiment.metrics, &PARAMETERS));
    grown(&mut all);
    for step in 0..STEPS {
        measure(&store, step);
        grown(&mut all);
    }
    all
}

const PARAMETERS: [&str; 3] = ["situation", "qos", "size"];
const STEPS: usize = 4;

/// One repeat: of two configurations, twice each. One of them has no result.
fn measure(store: &Store, step: usize) {
    let experiment = experiments::ALL[0];
    let mut journal = store
        .append(experiment.id, experiment.metrics, &PARAMETERS)
        .expect("a journal");
    let measured = Measurement {
        samples: vec![("latency", vec![step as f64, 0.5])],
        values: vec![("overhead", f64::NAN)],
        ..Measurement::default()
    };
    let outcome = match step {
        2 => RepeatOutcome::Failed("as it happens".into()),
        _ => RepeatOutcome::Measured(measured),
    };
    let added = journal.add(&configuration_of(step), step / 2, 0.0, outcome);
    added.expect("written");
}

fn configuration_of(step: usize) -> Configuration {
    configuration(256, ["pteros", "cyclone"][step % 2])
}

/// Measures what a folder lacks, as a resumed run does.
fn go_on(store: &Store) {
    for step in 0..STEPS {
        let entries = store.entries("m16.1").expect("entries");
        let is_it = |e: &pteros_lab::store::JournalEntry| {
            e.is_final()
                && e.implementation == configuration_of(step).implementation
                && e.repeat == step / 2
        };
        if !entries.iter().any(is_it) {
            measure(store, step);
        }
    }
}

#[test]
fn a_kill_at_any_point_costs_one_repeat_at_most() {
    let whole = Folder::new("whole");
    let all = writes(&whole);
    let of = |store: &Store| {
        let mut samples: Vec<_> = store.samples("m16.1").expect("samples");
        samples.sort_by_key(|s| (s.repeat, s.configuration.clone(), s.value.to_bits()));
        samples
    };
    let expected = of(&Store::open(whole.path()).expect("a store"));
    assert_eq!(expected.len(), 2 * (STEPS - 1));
    let total: usize = all.iter().map(|(_, bytes)| bytes.len()).sum();
    let killed = Folder::new("report-killed");
    // At the ends of each write, and at some places within.
    let mut ends = vec![0];
    for (_, bytes) in &all {
        ends.push(ends.last().copied().unwrap_or(0) + bytes.len());
    }
    let is_tried =
        |at: &usize| at.is_multiple_of(13) || ends.iter().any(|end| end.abs_diff(*at) <= 1);
    for at in (0..=total).filter(is_tried) {
        let store = Store::create(killed.path(), Extent::Quick).expect("a store");
        let folder = killed.path().join("m16.1");
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut files = [Vec::new(), Vec::new()];
        let (mut left, mut finished) = (at, 0);
        for (is_journal, bytes) in &all {
            let kept = bytes.len().min(left);
            files[usize::from(*is_journal)].extend_from_slice(&bytes[..kept]);
            left -= kept;
            finished += usize::from(*is_journal && !bytes.is_empty() && kept == bytes.len());
        }
        std::fs::write(folder.join("samples.csv"), &files[0]).expect("written");
        std::fs::write(folder.join("measured.jsonl"), &files[1]).expect("written");
        let entries = store.entries("m16.1").expect("entries");
        assert_eq!(entries.len(), finished, "killed after byte {at}");
        go_on(&store);
        assert_eq!(of(&store), expected, "killed after byte {at}");
        let entries = store.entries("m16.1").expect("entries");
        assert_eq!(entries.len(), STEPS, "killed after byte {at}");
    }
}

#[test]
fn lines_with_missing_samples_are_measured_again_and_stay_deleted() {
    let folder = Folder::new("gone");
    drop(writes(&folder));
    let store = Store::open(folder.path()).expect("a store");
    let expected = store.samples("m16.1").expect("samples").len();
    // As after a power cut that only the journal survived.
    let samples = folder.path().join("m16.1/samples.csv");
    let text = std::fs::read_to_string(&samples).expect("samples");
    let kept = text.lines().take(2).map(str::len).sum::<usize>() + 2;
    std::fs::write(&samples, &text[..kept]).expect("written");
    assert!(store.entries("m16.1").expect("entries").is_empty());
    go_on(&store);
    assert_eq!(store.entries("m16.1").expect("entries").len(), STEPS);
    let again = store.samples("m16.1").expect("samples");
    assert_eq!(again.len(), expected);
    let text = std::fs::read_to_string(&samples).expect("samples");
    assert_eq!(text.lines().count(), expected + 1, "{text}");
}
