//! The fuzz targets of security without a fuzzer: on their inputs, on the fixtures and
//! on changes of them.

use pteros_test_support::fuzz::security;
use pteros_test_support::fuzz::seeds::{seeds, targets, try_all};

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

/// The inputs of a target.
fn inputs(name: &str, ending: Option<&str>) -> Vec<Vec<u8>> {
    let mut inputs = seeds(name);
    inputs.extend(ending.map(fixtures).unwrap_or_default());
    if name == "security_frame" {
        inputs.extend(security::sealed());
    }
    assert!(inputs.len() >= 6, "{name} has {} inputs", inputs.len());
    inputs
}

macro_rules! targets {
    ($($name:ident: $ending:expr, $changes:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let inputs = inputs(stringify!($name), $ending);
                try_all(security::$name, &inputs, $changes, 8_192);
            }
        )*

        /// No target is left out, and no inputs without target are kept.
        #[test]
        fn every_fuzz_target_of_security_is_tried() {
            let mut tried = vec![$(stringify!($name).to_string()),*];
            tried.sort();
            for mut names in targets() {
                names.retain(|name| name.starts_with("security_"));
                assert_eq!(names, tried);
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
