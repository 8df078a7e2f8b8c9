//! The table of the museum (README.md) against what is in it.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Every story of both wings and what its file says.
fn stories() -> BTreeSet<(String, String)> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/museum");
    let payloads = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../msg/tests/museum");
    let mut found = BTreeSet::new();
    for folder in [tests, payloads] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.extension().is_none_or(|e| e != "rs") || name == "catalogue.rs" {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for story in text.split("#[test]\nfn ").skip(1) {
                let story = story.split('(').next().unwrap_or_default();
                found.insert((story.into(), name.clone()));
            }
        }
    }
    found
}

#[test]
fn every_story_stands_in_the_table_and_nothing_else() {
    let table = include_str!("README.md").lines();
    let rows = table.filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(2);
        let story = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((story.to_string(), cells.next()?.to_string()))
    });
    let rows: BTreeSet<(String, String)> = rows.collect();
    let told = stories();
    let odd: Vec<_> = rows.symmetric_difference(&told).collect();
    assert!(
        odd.is_empty(),
        "in the table or in the sources alone: {odd:?}"
    );
}

/// Forty-five of them at least are played beside a live pair, and every one of
/// these ends with the rules.
#[test]
fn stories_end_with_the_rules() {
    let sources = [
        include_str!("addresses.rs"),
        include_str!("endpoints.rs"),
        include_str!("fragments.rs"),
        include_str!("liveliness.rs"),
        include_str!("parameters.rs"),
        include_str!("participants.rs"),
        include_str!("requests.rs"),
        include_str!("sequences.rs"),
        include_str!("submessages.rs"),
        include_str!("times.rs"),
    ];
    let bodies = sources
        .iter()
        .flat_map(|text| text.split("#[test]\nfn ").skip(1));
    let mut beside_a_pair = 0;
    for body in bodies {
        let name = body.split('(').next().unwrap_or_default();
        let body = body.split("\n}\n").next().unwrap_or_default();
        // Helpers that open a town and close it.
        let is_helped = ["announced_with(", "told("]
            .iter()
            .any(|h| body.contains(h));
        let is_live = body.contains("Hall::open") || body.contains("Town::open");
        assert!(
            is_helped || !is_live || body.contains(".close();"),
            "{name} does not end with the rules"
        );
        beside_a_pair += usize::from(is_helped || is_live);
    }
    assert!(beside_a_pair >= 45, "{beside_a_pair}");
}
