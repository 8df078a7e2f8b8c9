//! Tests that need a process of their own, because they count what belongs to the
//! whole process: descriptors, threads, memory, or because they change it for good.
//!
//! Such a test begins with
//! ```ignore
//! if !pteros_test_support::own_process!() {
//!     return;
//! }
//! ```
//! It then runs its program again for this test alone, and passes if that passes.

use std::process::Command;

/// Set in such a process, to the name of the test.
const VARIABLE: &str = "PTEROS_TEST_PROCESS";

/// Whether this is the process of the calling test. If not, runs it, and panics if it
/// fails.
#[macro_export]
macro_rules! own_process {
    () => {{
        fn here() {}
        $crate::own_process::run($crate::own_process::name_of(&here))
    }};
}

/// The name of the test that declares a function: `crash::leaks`.
pub fn name_of<F>(_: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.rsplit_once("::").map_or(path, |(test, _)| test);
    path.split_once("::").map_or(path, |(_, test)| test)
}

/// The command that runs one test of this program, ignored or not, and prints what it
/// prints.
pub fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program's path"));
    command.args([test, "--exact", "--include-ignored", "--nocapture"]);
    command
}

/// See [`crate::own_process!`].
pub fn run(test: &str) -> bool {
    if std::env::var_os(VARIABLE).is_some_and(|name| name == test) {
        return true;
    }
    let output = command(test).env(VARIABLE, test).output();
    let output = output.expect("this program again");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    let passed = output.status.success() && text.contains("test result: ok. 1 passed");
    assert!(passed, "{test} failed in its own process");
    false
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_runs_in_a_process_with_its_name() {
        let parent = std::process::id().to_string();
        if crate::own_process!() {
            println!("in another process: {parent}");
        }
    }

    #[test]
    fn the_name_is_that_of_the_test() {
        fn here() {}
        let name = super::name_of(&here);
        assert_eq!(name, "own_process::tests::the_name_is_that_of_the_test");
    }
}
