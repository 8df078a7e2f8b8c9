//! Runs fuzz targets without a fuzzer: on the inputs of `verify/fuzz/seeds` and on
//! mutations of them, the same ones in every run. So every change is tested on every
//! target, with any toolchain. `cargo xtask fuzz` searches further.

use std::path::{Path, PathBuf};

use crate::mutation;
use crate::random::Random;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/fuzz")
}

/// The stored inputs of a target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let path = folder().join(format!("seeds/{target}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let byte = |line: &str, at| u8::from_str_radix(line.get(at..at + 2)?, 16).ok();
    let bytes = |line: &str| {
        let bytes: Option<Vec<u8>> = (0..line.len())
            .step_by(2)
            .map(|at| byte(line, at))
            .collect();
        bytes.unwrap_or_else(|| panic!("{}: {line}", path.display()))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(bytes).collect()
}

/// Names of the targets that have a program, and of those that have inputs, sorted.
pub fn targets() -> [Vec<String>; 2] {
    [("fuzz_targets", "rs"), ("seeds", "hex")].map(|(name, ending)| {
        let files = std::fs::read_dir(folder().join(name)).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let mut names: Vec<String> = paths
            .filter(|path| path.extension().is_some_and(|e| e == ending))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    })
}

/// Prints the input, to be added to `verify/fuzz/seeds`, if the target panics.
struct Trial<'a>(&'a [u8]);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("input: {hex}");
        }
    }
}

/// Runs a target on these inputs and on `changes` mutations of them, each of at most
/// `bytes_max` bytes.
pub fn try_all(target: fn(&[u8]), seeds: &[Vec<u8>], changes: usize, bytes_max: usize) {
    let run = |input: &[u8]| {
        let _trial = Trial(input);
        target(input);
    };
    run(&[]);
    seeds.iter().for_each(|seed| run(seed));
    let mut random = Random::new(0x7e57);
    for _ in 0..changes {
        run(&mutation::changed(seeds, &mut random, bytes_max));
    }
}
