//! The part of the wheel's suite that starts launch files, `test_launch*.py`: half of its
//! time, in a process of its own.

use std::path::Path;

use crate::wheel::{must_pass, pytest, unpacked_packages};

#[test]
fn the_python_suite_of_launch_files_passes() {
    let Some(packages) = unpacked_packages("python-launch-suite") else {
        return;
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut on_the_module = pytest(&packages);
    let mut count = 0;
    for entry in tests.read_dir().expect("read tests").flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("test_launch") && name.ends_with(".py") {
            on_the_module.arg(entry.path());
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} files");
    must_pass(on_the_module);
}
