//! The fuzz targets of bags (`test_support/src/fuzz/bag.rs`) without a fuzzer: on the inputs of
//! `verify/fuzz/seeds`, on the fixtures, and on changes of them.

use std::path::{Path, PathBuf};

use pteros_test_support::fuzz::bag;

/// Changed inputs of each format.
const CHANGES: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(root().join("crates/bag/tests/fixtures").join(name)).unwrap()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let path = root().join(format!("verify/fuzz/seeds/{target}.hex"));
    let text = std::fs::read_to_string(path).unwrap();
    let byte = |line: &str, at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            (0..line.len())
                .step_by(2)
                .map(|at| byte(line, at))
                .collect()
        })
        .collect()
}

/// Runs a target on its inputs, and on inputs with some bytes changed or the end cut off.
fn try_all(mark: &[u8], inputs: &[Vec<u8>]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % limit
    };
    inputs.iter().for_each(|input| bag::read(mark, input));
    for change in 0..CHANGES {
        let mut bad = inputs[change % inputs.len()].clone();
        for _ in 0..1 + random(5) {
            let at = random(bad.len());
            bad[at] = match random(3) {
                0 => 0xff,
                1 => 0,
                _ => random(256) as u8,
            };
        }
        if random(4) == 0 {
            bad.truncate(random(bad.len()));
        }
        bag::read(mark, &bad);
    }
}

#[test]
fn changed_mcap_files_are_read_without_a_panic() {
    try_all(bag::MCAP, &seeds("bag_mcap"));
}

#[test]
fn changed_databases_are_read_without_a_panic() {
    let names = ["version1.db3", "version3.db3", "version4.db3"];
    try_all(bag::SQLITE, &names.map(fixture));
}

#[test]
fn changed_bags_of_ros_1_are_read_without_a_panic() {
    let names = ["plain.bag", "bz2.bag", "lz4.bag"];
    try_all(bag::ROS1, &names.map(fixture));
}
