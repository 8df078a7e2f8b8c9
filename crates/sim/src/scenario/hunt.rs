//! Scenarios as a net for bugs that random graphs seldom meet.

#[cfg(feature = "faults")]
use super::{play, read};

/// The first scenario of `tests/scenarios` that fails while a bug is switched on, with
/// what it says. Scenarios hold without.
#[cfg(feature = "faults")]
pub fn failing_with(bug: &'static str) -> Option<String> {
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = std::fs::read_dir(folder).ok()?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).ok()?;
        for scenario in read(&text).ok()? {
            for way in &scenario.ways {
                pteros_rtps::fault::arm(1, &[(bug, 10_000)]);
                let played = std::panic::catch_unwind(|| play(&scenario, *way));
                pteros_rtps::fault::disarm();
                if !matches!(played, Ok(Ok(()))) {
                    return Some(format!("S1 scenario {} fails", scenario.name));
                }
            }
        }
    }
    None
}

/// Without fault points there are no bugs.
#[cfg(not(feature = "faults"))]
pub fn failing_with(_bug: &'static str) -> Option<String> {
    None
}
