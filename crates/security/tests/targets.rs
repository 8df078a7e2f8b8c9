//! The fuzz targets of security (`verify/fuzz/src/security.rs`) without a fuzzer: on
//! the inputs of `verify/fuzz/seeds`, on the fixtures and on changes of them, the same
//! ones in every run. As `crates/rtps/tests/targets` for the others.

#[path = "../../rtps/tests/targets/mutation.rs"]
mod mutation;
#[path = "../../../verify/fuzz/src/security.rs"]
mod security;

use std::path::{Path, PathBuf};

/// A small seeded generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// Tells which input it was, to be put into `verify/fuzz/seeds`, if the target panics.
struct Trial<'a>(&'a [u8]);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("input: {hex}");
        }
    }
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/fuzz")
}

/// The inputs that are kept for a target.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let path = fuzz_folder().join(format!("seeds/{target}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let byte = |line: &str, at| u8::from_str_radix(line.get(at..at + 2)?, 16).ok();
    let bytes = |line: &str| {
        let all: Option<Vec<u8>> = (0..line.len())
            .step_by(2)
            .map(|at| byte(line, at))
            .collect();
        all.unwrap_or_else(|| panic!("{}: {line}", path.display()))
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(bytes)
        .collect()
}

/// All fixtures with this ending, wherever they lie.
fn fixtures(ending: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![security::fixtures()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) && !path.is_symlink() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Runs a target on its inputs and on `changes` changes of them.
fn try_all(name: &str, target: fn(&[u8]), ending: Option<&str>, changes: usize) {
    let mut seeds = kept(name);
    seeds.extend(ending.map(fixtures).unwrap_or_default());
    if name == "security_frame" {
        seeds.extend(security::sealed());
    }
    assert!(seeds.len() >= 6, "{name} has {} inputs", seeds.len());
    let run = |input: &[u8]| {
        let _trial = Trial(input);
        target(input);
    };
    run(&[]);
    seeds.iter().for_each(|seed| run(seed));
    let mut random = Random(0x7e57);
    for _ in 0..changes {
        run(&mutation::changed(&seeds, &mut random, 8_192));
    }
}

macro_rules! targets {
    ($($name:ident: $ending:expr, $changes:literal;)*) => {
        $(
            #[test]
            fn $name() {
                try_all(stringify!($name), security::$name, $ending, $changes);
            }
        )*

        /// No target is left out, and no inputs without target are kept.
        #[test]
        fn every_fuzz_target_of_security_is_tried() {
            let mut tried = vec![$(stringify!($name).to_string()),*];
            tried.sort();
            for (folder, ending) in [("fuzz_targets", ".rs"), ("seeds", ".hex")] {
                let files = std::fs::read_dir(fuzz_folder().join(folder)).unwrap();
                let mut names: Vec<String> = files
                    .map(|file| file.unwrap().file_name().to_string_lossy().into_owned())
                    .filter_map(|name| name.strip_suffix(ending).map(Into::into))
                    .filter(|name: &String| name.starts_with("security_"))
                    .collect();
                names.sort();
                assert_eq!(names, tried, "verify/fuzz/{folder}");
            }
        }
    };
}

targets! {
    security_governance: Some("governance.xml"), 5000;
    security_permissions: Some("permissions.xml"), 5000;
    security_smime: Some(".p7s"), 2000;
    security_certificate: Some(".pem"), 3000;
    security_message: None, 20000;
    security_frame: None, 20000;
    security_handshake: None, 200;
    security_crypto_transform: None, 5000;
}
