//! The fuzz targets of bags (`test_support/src/fuzz/bag.rs`) without a fuzzer: on the inputs of
//! `verify/fuzz/seeds`, on the fixtures, and on changes of them.

use std::path::{Path, PathBuf};

use pteros_test_support::fuzz::{bag, seeds};

/// Changed inputs of each format.
const CHANGES: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(root().join("crates/bag/tests/fixtures").join(name)).unwrap()
}

/// Runs a target on its inputs, and on changes of them.
fn try_all(target: fn(&[u8]), inputs: &[Vec<u8>]) {
    let longest = inputs.iter().map(Vec::len).max().unwrap_or(0);
    seeds::try_all(target, inputs, CHANGES, 2 * longest);
}

#[test]
fn changed_mcap_files_are_read_without_a_panic() {
    try_all(|data| bag::read(bag::MCAP, data), &seeds::seeds("bag_mcap"));
}

#[test]
fn changed_databases_are_read_without_a_panic() {
    let names = ["version1.db3", "version3.db3", "version4.db3"];
    try_all(|data| bag::read(bag::SQLITE, data), &names.map(fixture));
}

#[test]
fn changed_bags_of_ros_1_are_read_without_a_panic() {
    let names = ["plain.bag", "bz2.bag", "lz4.bag"];
    try_all(|data| bag::read(bag::ROS1, data), &names.map(fixture));
}
