//! The fuzz targets (`verify/fuzz/src`) without a fuzzer: on the inputs of `verify/fuzz/seeds`
//! and on deterministic mutations of them. So every change is tested on every
//! target, with any toolchain. `cargo xtask fuzz` searches further.

#[path = "../../../../verify/fuzz/src/cdr.rs"]
mod cdr;
#[path = "../../../../verify/fuzz/src/discovery.rs"]
mod discovery;
#[path = "../regressions/discovery_harness.rs"]
mod discovery_harness;
#[path = "../domain/mod.rs"]
mod domain;
#[path = "../regressions/endpoint_harness.rs"]
mod endpoint_harness;
#[path = "../../../../verify/fuzz/src/message.rs"]
mod message;
#[path = "../../../../verify/fuzz/src/meter.rs"]
mod meter;
mod mutation;
#[path = "../regressions/packet.rs"]
mod packet;
#[path = "../pair/mod.rs"]
mod pair;
#[path = "../../../../verify/fuzz/src/pair_attack.rs"]
mod pair_attack;
#[path = "../../../../verify/fuzz/src/participant_attack.rs"]
mod participant_attack;
#[path = "../../../../verify/fuzz/src/steps.rs"]
mod steps;
#[path = "../../../../verify/fuzz/src/text.rs"]
mod text;
#[path = "../../../../verify/fuzz/src/types.rs"]
mod types;

use std::path::PathBuf;

use pair::net::Random;

/// The size limit of an input, bytes.
const BYTES_MAX: usize = 2_000;

/// The stored inputs of a target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../verify/fuzz/seeds");
    let path = folder.join(format!("{target}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| bytes(line, &path)).collect()
}

fn bytes(line: &str, path: &std::path::Path) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(line.get(at..at + 2)?, 16).ok();
    (0..line.len())
        .step_by(2)
        .map(|at| byte(at).unwrap_or_else(|| panic!("{}: {line}", path.display())))
        .collect()
}

/// Prints the input, to be added to `verify/fuzz/seeds`, if the target panics.
struct Trial<'a>(&'a [u8]);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
            println!("input: {hex}");
        }
    }
}

/// Runs a target on its inputs and on `changes` mutations of them.
fn try_all(name: &str, target: fn(&[u8]), changes: usize) {
    let seeds = seeds(name);
    assert!(seeds.len() >= 8, "{name} has {} inputs", seeds.len());
    let run = |input: &[u8]| {
        let _trial = Trial(input);
        target(input);
    };
    run(&[]);
    seeds.iter().for_each(|seed| run(seed));
    let mut random = Random::new(0x7e57);
    for _ in 0..changes {
        run(&mutation::changed(&seeds, &mut random, BYTES_MAX));
    }
}

macro_rules! targets {
    ($($name:ident: $target:path, $changes:literal;)*) => {
        $(
            #[test]
            fn $name() {
                try_all(stringify!($name), $target, $changes);
            }
        )*

        /// No target is left out, and no inputs are stored without a target.
        #[test]
        fn every_fuzz_target_runs_on_its_seeds() {
            let mut tried = vec![$(stringify!($name).to_string()),*];
            tried.sort();
            let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../verify/fuzz");
            for (folder, ending) in [("fuzz_targets", "rs"), ("seeds", "hex")] {
                let files = std::fs::read_dir(root.join(folder)).unwrap();
                let paths = files.map(|file| file.unwrap().path());
                let mut names: Vec<String> = paths
                    .filter(|path| path.extension().is_some_and(|e| e == ending))
                    .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
                    // Their inputs are tested in tests/targets.rs of security and bag.
                    .filter(|name: &String| !["security_", "bag_"].iter().any(|start| name.starts_with(start)))
                    .collect();
                names.sort();
                assert_eq!(names, tried, "verify/fuzz/{folder}");
            }
        }
    };
}

targets! {
    message: message::message, 20000;
    participant_data: discovery::participant_data, 10000;
    endpoint_data: discovery::endpoint_data, 10000;
    type_objects: types::type_objects, 20000;
    liveliness_data: discovery::liveliness_data, 5000;
    cdr: cdr::cdr, 10000;
    dynamic: cdr::dynamic, 5000;
    interface_file: text::interface_file, 5000;
    yaml: text::yaml, 5000;
    filter: text::filter, 10000;
    matched_reader: pair_attack::matched_reader, 3000;
    matched_writer: pair_attack::matched_writer, 3000;
    fragments: pair_attack::fragments, 3000;
    participant: participant_attack::participant, 600;
}
