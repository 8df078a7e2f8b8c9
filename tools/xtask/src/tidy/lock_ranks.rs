//! Lock ranks: every lock of the runtime comes from its lock file, which checks the
//! order. A lock of std or parking_lot would have no rank.

use super::tokens::{Kind, Token, tokens};

/// Where every lock needs a rank ...
const FOLDER: &str = "crates/runtime/src/";
/// ... except in the file that wraps them.
const LOCK_FILE: &str = "crates/runtime/src/lock.rs";
/// Types of std's `sync` that have a ranked counterpart.
const RANKED: &[&str] = &["Mutex", "MutexGuard", "RwLock", "Condvar"];

/// Checks one source file.
pub fn check(path: &str, text: &str, add: &mut impl FnMut(usize, String)) {
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    if !path.starts_with(FOLDER) || path == LOCK_FILE || is_test {
        return;
    }
    for (line, name) in unranked(&tokens(text)) {
        add(
            line,
            format!("{name} has no rank: use the one of {LOCK_FILE}, with a rank of its table"),
        );
    }
}

/// Lines and names of locks that are not of the lock file.
fn unranked(all: &[Token<'_>]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, token) in all.iter().enumerate() {
        if token.is_word("parking_lot") {
            found.push((token.line, "a lock of parking_lot".to_owned()));
        }
        let path: Vec<Kind<'_>> = all[at..].iter().take(4).map(|token| token.kind).collect();
        let std_sync = [
            Kind::Word("std"),
            Kind::PathSeparator,
            Kind::Word("sync"),
            Kind::PathSeparator,
        ];
        if path == std_sync {
            // One path, or the braces of a `use` up to its semicolon.
            let is_tree = all.get(at + 4).is_some_and(|token| token.is('{'));
            let names = all[at + 4..].iter();
            let names =
                names.take_while(|token| is_tree && !token.is(';') || token.word().is_some());
            let locks =
                names.filter(|token| token.word().is_some_and(|name| RANKED.contains(&name)));
            found.extend(locks.map(|lock| {
                let name = lock.word().unwrap_or_default();
                (lock.line, format!("std's {name}"))
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        check(path, text, &mut |line, _| found.push(line));
        found
    }

    #[test]
    fn a_lock_without_a_rank_is_found_in_the_runtime() {
        let seeded = "//! X.\nuse std::sync::{Arc,\n    Mutex};\nuse parking_lot::RwLock;\n\
                      fn f(a: std::sync::Condvar, b: std::sync::Arc<u8>) {}\n";
        assert_eq!(lines("crates/runtime/src/a/b.rs", seeded), [3, 4, 5]);
        for path in [
            LOCK_FILE,
            "crates/runtime/src/a/tests.rs",
            "crates/net/src/poll.rs",
        ] {
            assert_eq!(lines(path, seeded), [0; 0], "{path}");
        }
    }

    #[test]
    fn a_ranked_lock_and_other_parts_of_sync_are_fine() {
        let text = "//! Not a std::sync::Mutex.\nuse crate::lock::{Condvar, Mutex};\n\
                    use std::sync::atomic::AtomicU32;\nuse std::sync::{Arc, Weak};\n\
                    fn f(a: Mutex<u8>) {}\n";
        assert_eq!(lines("crates/runtime/src/a.rs", text), [0; 0]);
    }
}
