//! Python check: whose rclpy Python programs of this environment import, that of
//! Pteros's wheel or that of a ROS 2, and how to choose.

use super::finding::{Finding, Findings};
use crate::python_program;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The area of the findings.
const AREA: &str = "Python";

/// Prints the folders that have rclpy, in the order in which Python searches them. No
/// package is imported.
const SCRIPT: &str = "\
import os, sys
for folder in sys.path:
    if os.path.isfile(os.path.join(folder, 'rclpy', '__init__.py')):
        own = os.path.isfile(os.path.join(folder, 'pteros', '_native.abi3.so'))
        print('pteros' if own else 'ros2', folder, sep='\\t')
";

/// A folder of Python packages with rclpy.
struct Rclpy {
    is_of_the_wheel: bool,
    folder: PathBuf,
}

/// Checks the Python that [`python_program::named`] names, else the first of the
/// candidates that is there. Without an rclpy there is nothing to report.
pub fn check() -> Vec<Finding> {
    let mut found = Findings::new(AREA);
    match python_program::named() {
        Some(python) => {
            if let Err(error) = check_python(&python, &mut found) {
                found.warn(
                    format!("{} does not run ({error})", python.display()),
                    format!("name another Python by {}", python_program::VARIABLE),
                );
            }
        }
        // No Python, no Python programs.
        None => {
            let candidates = python_program::candidates();
            let _ = candidates
                .iter()
                .find(|python| check_python(python, &mut found).is_ok());
        }
    }
    found.into_list()
}

/// Reports the rclpy of a Python. Blocks until it has ended.
///
/// # Errors
/// It cannot be started.
fn check_python(python: &Path, found: &mut Findings) -> std::io::Result<()> {
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        let all = parse(&String::from_utf8_lossy(&output.stdout));
        report(python, &all, found);
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or_default();
    found.warn(
        format!(
            "{} does not run ({}): {last}",
            python.display(),
            output.status
        ),
        "correct PYTHONHOME and PYTHONPATH",
    );
    Ok(())
}

fn parse(output: &str) -> Vec<Rclpy> {
    let parse_line = |line: &str| {
        let (owner, folder) = line.split_once('\t')?;
        Some(Rclpy {
            is_of_the_wheel: owner == "pteros",
            folder: folder.into(),
        })
    };
    output.lines().filter_map(parse_line).collect()
}

fn report(python: &Path, all: &[Rclpy], found: &mut Findings) {
    let python = python.display();
    let Some((used, others)) = all.split_first() else {
        return;
    };
    let name = |rclpy: &Rclpy| {
        let owner = match rclpy.is_of_the_wheel {
            true => "Pteros's wheel",
            false => "ROS 2",
        };
        format!("rclpy of {owner} in {}", rclpy.folder.display())
    };
    let other = others
        .iter()
        .find(|other| other.is_of_the_wheel != used.is_of_the_wheel);
    let Some(other) = other else {
        found.ok(format!("{python} imports {}", name(used)));
        return;
    };
    let fix = match used.is_of_the_wheel {
        true => "to use that of ROS 2, put its folder first in PYTHONPATH",
        false => {
            "to use the wheel, start a shell in which no ROS 2 is sourced, or remove ROS 2's folder from PYTHONPATH; ROS 2's rclpy runs on Pteros with RMW_IMPLEMENTATION=rmw_pteros_cpp"
        }
    };
    found.note_with(
        format!("{python} imports {}, not {}", name(used), name(other)),
        fix,
    );
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingSeverity;
    use super::*;
    use pteros_test_support::folder::Folder;

    fn findings(output: &str) -> Vec<Finding> {
        let mut found = Findings::new(AREA);
        report(Path::new("python3"), &parse(output), &mut found);
        found.into_list()
    }

    #[test]
    fn the_first_folder_is_the_one_that_is_used() {
        let both = findings("ros2\t/opt/ros/lib\npteros\t/venv/lib\n");
        assert_eq!(both[0].severity, FindingSeverity::Note);
        assert!(
            both[0]
                .text
                .contains("imports rclpy of ROS 2 in /opt/ros/lib, not")
        );
        assert!(
            both[0]
                .fix
                .as_deref()
                .is_some_and(|fix| fix.contains("PYTHONPATH"))
        );
        let wheel = findings("pteros\t/venv/lib\nros2\t/opt/ros/lib\n");
        assert!(
            wheel[0]
                .text
                .contains("imports rclpy of Pteros's wheel in /venv/lib, not")
        );
    }

    #[test]
    fn one_rclpy_is_fine_and_none_is_nothing_to_report() {
        let one = findings("pteros\t/venv/lib\n");
        assert_eq!(one[0].severity, FindingSeverity::Ok);
        assert_eq!(one[0].fix, None);
        assert!(findings("").is_empty());
    }

    #[test]
    fn the_script_finds_the_folders_in_their_order() {
        let folder = Folder::absent("python");
        for (place, own) in [("a", true), ("b", false)] {
            let packages = folder.join(place);
            std::fs::create_dir_all(packages.join("rclpy")).unwrap();
            std::fs::write(packages.join("rclpy/__init__.py"), "").unwrap();
            if own {
                std::fs::create_dir_all(packages.join("pteros")).unwrap();
                std::fs::write(packages.join("pteros/_native.abi3.so"), "").unwrap();
            }
        }
        let path = std::env::join_paths([folder.join("b"), folder.join("a")]).unwrap();
        let output = Command::new("python3")
            .args(["-c", SCRIPT])
            .env("PYTHONPATH", path)
            .output();
        let Ok(output) = output else {
            println!("skipped: no python3");
            return;
        };
        let all = parse(&String::from_utf8_lossy(&output.stdout));
        let ours: Vec<_> = all
            .iter()
            .filter(|rclpy| rclpy.folder.starts_with(&folder))
            .collect();
        assert!(!ours[0].is_of_the_wheel && ours[0].folder.ends_with("b"));
        assert!(ours[1].is_of_the_wheel && ours[1].folder.ends_with("a"));
    }
}
