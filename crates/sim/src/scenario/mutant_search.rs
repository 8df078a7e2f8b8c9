//! Scenarios detect mutants that random graphs seldom reach.

#[cfg(feature = "faults")]
use super::{read, run_scenario};

/// The first scenario of `tests/scenarios` that fails with a mutant switched on.
/// Without it all scenarios hold.
#[cfg(feature = "faults")]
pub fn scenario_that_fails_with(mutant: &'static str) -> Option<String> {
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = std::fs::read_dir(folder).ok()?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).ok()?;
        for scenario in read(&text).ok()? {
            for path in &scenario.paths {
                pteros_rtps::fault::arm(1, &[(mutant, 10_000)]);
                let outcome = std::panic::catch_unwind(|| run_scenario(&scenario, *path));
                pteros_rtps::fault::disarm();
                if !matches!(outcome, Ok(Ok(()))) {
                    return Some(format!("S1 scenario {} fails", scenario.name));
                }
            }
        }
    }
    None
}

/// This build has no fault points.
#[cfg(not(feature = "faults"))]
pub fn scenario_that_fails_with(_mutant: &'static str) -> Option<String> {
    None
}
