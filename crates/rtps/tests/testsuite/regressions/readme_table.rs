//! Check of the README.md table against the test cases.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Every test case here and in `pteros-msg`, with its file.
fn test_cases() -> BTreeSet<(String, String)> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/testsuite/regressions");
    let payloads =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../msg/tests/testsuite/regressions");
    let mut found = BTreeSet::new();
    for folder in [tests, payloads] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.extension().is_none_or(|e| e != "rs") || name == "readme_table.rs" {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for test_case in text.split("#[test]\nfn ").skip(1) {
                let test_case = test_case.split('(').next().unwrap_or_default();
                found.insert((test_case.into(), name.clone()));
            }
        }
    }
    found
}

#[test]
fn every_test_case_is_in_the_readme_table_and_nothing_else() {
    let table = include_str!("README.md").lines();
    let rows = table.filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(2);
        let test_case = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((test_case.to_string(), cells.next()?.to_string()))
    });
    let rows: BTreeSet<(String, String)> = rows.collect();
    let found = test_cases();
    let odd: Vec<_> = rows.symmetric_difference(&found).collect();
    assert!(
        odd.is_empty(),
        "in the table or in the sources alone: {odd:?}"
    );
}
