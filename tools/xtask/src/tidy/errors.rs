//! A public error prints its text, also in the Debug form.
//!
//! `main` that returns `Result<(), Box<dyn Error>>` and `unwrap` print the Debug form. Both
//! are read by users. So an error type of a crate that users call implements Debug by
//! `debug_as_display!` and does not derive it.

/// Crates whose errors never leave them: the command and the plug-ins print texts
/// themselves, and `security` hands on `Diagnostic` alone.
const INTERNAL: [&str; 5] = ["c", "cli", "python", "rmw_pteros", "security"];

/// Adds a finding for each public error of a library crate that derives Debug.
pub fn check(path: &str, text: &str, add: &mut impl FnMut(usize, String)) {
    let Some((name, _)) = path
        .strip_prefix("crates/")
        .and_then(|path| path.split_once("/src/"))
    else {
        return;
    };
    if INTERNAL.contains(&name) {
        return;
    }
    let mut derived: Option<(usize, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("#[derive(") {
            derived = Some((index + 1, line));
        } else if let Some(name) = type_name(line) {
            if let Some((line, derives)) = derived.take()
                && has_word(derives, "Debug")
                && (has_word(derives, "Error") || text.contains(&format!("Error for {name} {{")))
            {
                add(
                    line,
                    format!(
                        "{name} derives Debug, which main() prints: implement it by \
                         debug_as_display!({name})"
                    ),
                );
            }
        } else if line.starts_with('}') || line.is_empty() {
            derived = None;
        }
    }
}

/// The name of the public type that a line begins.
fn type_name(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("pub enum ")
        .or_else(|| line.strip_prefix("pub struct "))?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric())
        .any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_error_that_derives_debug_is_found() {
        let found = |path: &str, text: &str| {
            let mut lines = Vec::new();
            check(path, text, &mut |line, _| lines.push(line));
            lines
        };
        let derived =
            "\n#[derive(Clone, Debug, thiserror::Error)]\n#[non_exhaustive]\npub enum A {\n}\n";
        assert_eq!(found("crates/runtime/src/a.rs", derived), [2]);
        assert_eq!(found("crates/cli/src/a.rs", derived), [0; 0]);
        let by_hand = "#[derive(Debug)]\npub struct A;\nimpl core::error::Error for A {}\n";
        assert_eq!(found("crates/msg/src/a.rs", by_hand), [1]);
        let text = "#[derive(thiserror::Error)]\npub enum A {\n}\ndebug_as_display!(A);\n";
        assert_eq!(found("crates/msg/src/a.rs", text), [0; 0]);
        let no_error = "#[derive(Debug)]\npub struct ErrorCount;\n";
        assert_eq!(found("crates/msg/src/a.rs", no_error), [0; 0]);
    }
}
