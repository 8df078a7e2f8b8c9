//! The page's JavaScript: runs the tests of `tests/page` by `node --test` where a Node of
//! version 20 or newer is found, and says that it did not elsewhere.

use std::io::Write;
use std::path::Path;
use std::process::Command;

const MAJOR_MIN: u32 = 20;

fn node_major() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[test]
fn the_pages_modules_pass_their_tests() {
    if node_major().is_none_or(|major| major < MAJOR_MIN) {
        let text = "skipped: no Node of version 20 or newer runs the tests of the page";
        let _ = writeln!(std::io::stdout(), "\n{text}");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page");
    let output = Command::new("node")
        .arg("--test")
        .current_dir(folder)
        .output()
        .expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let passed = text
        .lines()
        .find_map(|line| {
            line.trim_start_matches(['#', 'ℹ', ' '])
                .strip_prefix("pass ")
        })
        .and_then(|count| count.trim().parse::<u32>().ok());
    assert!(passed.is_some_and(|count| count > 50), "{text}");
}
