//! Private metaphors: words that once stood for something that has a standard term.
//!
//! `cargo xtask prose` counts them in prose and identifiers. `cargo xtask tidy` refuses
//! them in names of files and types, because such a name spreads.

/// Metaphors and their standard terms. They are looked for as whole parts of identifiers
/// and as whole words of prose.
pub const METAPHORS: &[(&str, &str)] = &[
    ("anew", "again, reset"),
    ("aside", "suppressed, deferred remote send"),
    ("attendant", "inline listener"),
    ("cast", "model, oracle"),
    ("contestant", "implementation under test"),
    ("creditor", "requesting reader"),
    ("crew", "executor core"),
    ("doubt", "plausibility check, blocking budget"),
    ("exhibit", "figure, table"),
    ("heed", "handle"),
    ("hurry", "wake"),
    ("intake", "message cache, reader history cache"),
    ("kin", "related sample identity"),
    ("lapse", "reader reset"),
    ("latch", "local history, transient local"),
    ("ledger", "goal table"),
    ("misfortune", "fault injection"),
    ("museum", "regressions"),
    ("neighbour", "same-host peer"),
    ("nudge", "wake"),
    ("originals", "duplicate filter"),
    ("parcel", "data encoder"),
    ("patience", "blocking budget, timeout"),
    ("remnant", "orphan"),
    ("roster", "component registry"),
    ("rouse", "wake"),
    ("shelf", "keyed ready queue"),
    ("shield", "crypto transform"),
    ("stranger", "unauthenticated participant"),
    ("verdict", "decision, outcome"),
    ("volley", "segmented send"),
    ("warrant", "peer authenticator"),
    ("whoever", "the actor's name"),
];

/// Words that prose may use, and that say too little as the name of a file or type.
const VAGUE_NAMES: &[(&str, &str)] = &[
    ("latched", "transient local"),
    ("later", "what comes later"),
    ("leaving", "undeclared, unmatched"),
];

/// Adds a finding for the name of a file, if a metaphor is part of it, and for each such
/// name of a type that it defines. Files of tests may have vague names.
pub fn check(path: &str, text: &str, add: &mut impl FnMut(usize, String)) {
    let is_test = path.contains("/tests/");
    let vague = if is_test { &[] } else { VAGUE_NAMES };
    let mut check_name = |line: usize, kind: &str, name: &str| {
        let words = words(name);
        let known = METAPHORS.iter().chain(vague);
        for (metaphor, term) in known.filter(|(metaphor, _)| words.iter().any(|w| is(w, metaphor)))
        {
            let message =
                format!("the {kind} {name} has the metaphor \"{metaphor}\": say {term} instead");
            add(line, message);
        }
    };
    check_name(1, "path", path);
    if path.ends_with(".rs") && !path.contains("/generated/") {
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = type_name(line) {
                check_name(index + 1, "type", name);
            }
        }
    }
}

/// Whether a word in lower case is a metaphor, or its plural.
pub fn is(word: &str, metaphor: &str) -> bool {
    word == metaphor || word.strip_suffix('s') == Some(metaphor)
}

/// The name that a line defines a type by.
pub fn type_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest);
        rest.trim_start()
    });
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

/// The words of a text in lower case, identifiers cut into theirs.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_uppercase() || !c.is_alphabetic() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(path, text, &mut |line, message| {
            found.push(format!("{line} {message}"));
        });
        found
    }

    #[test]
    fn identifiers_are_cut_into_words() {
        assert_eq!(
            words("HeartbeatSchedule::poll_at"),
            ["heartbeat", "schedule", "poll", "at"]
        );
    }

    #[test]
    fn type_names_are_found_behind_any_visibility() {
        assert_eq!(type_name("pub(crate) struct Change<'a> {"), Some("Change"));
        assert_eq!(type_name("    enum State {"), Some("State"));
        assert_eq!(type_name("pub struct Seq(i64);"), Some("Seq"));
        assert_eq!(
            type_name(concat!("pub uns", "afe trait Plain {")),
            Some("Plain")
        );
        assert_eq!(type_name("let structure = 1;"), None);
    }

    #[test]
    fn a_metaphor_in_the_name_of_a_file_or_type_is_refused() {
        let path = "crates/a/src/b.rs";
        assert_eq!(messages(path, "//! A.\nstruct AckState;\n"), [""; 0]);
        for name in ["AckDoubt", "Doubts", "IntakeState", "LatchedMessages"] {
            let found = messages(path, &format!("//! A.\n\npub(crate) struct {name} {{\n"));
            assert!(
                found[0].starts_with(&format!("3 the type {name}")),
                "{found:?}"
            );
        }
        for kind in ["enum", "trait", "pub union", "pub type"] {
            let found = messages(path, &format!("{kind} Shelf<T> {{\n"));
            assert!(found[0].contains("keyed ready queue"), "{found:?}");
        }
        for path in [
            "crates/a/src/ack_doubt.rs",
            "crates/a/src/intake/sync.rs",
            "crates/a/src/later.rs",
            "tools/crew.py",
            "docs/internals/museums.md",
        ] {
            assert_eq!(messages(path, "").len(), 1, "{path}");
        }
    }

    #[test]
    fn words_that_only_contain_one_are_accepted() {
        let path = "crates/a/src/broadcast.rs";
        let text = "struct Screwdriver;\n// A doubt in a comment.\nlet doubt = 1;\n";
        assert_eq!(messages(path, text), [""; 0]);
        assert_eq!(messages("crates/a/tests/leaving.rs", ""), [""; 0]);
    }
}
