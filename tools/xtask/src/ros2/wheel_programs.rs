//! Programs that the tests of `launch_ros` start, in a prefix of their own.
//!
//! Those of `demo_nodes_py` are written as pip writes them. The programs of C++ have
//! stand-ins of rclpy: the tests look at what `launch_ros` does with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

/// A component container that answers and loads nothing.
const CONTAINER: &str = include_str!("component_container.py");
/// Imports and calls a function, as the script of an entry point does.
const ENTRY_POINT: &str = "#!/usr/bin/env python3\nimport MODULE\n\nMODULE.main()\n";
/// A node that listens, in place of that of C++.
const LISTENER: &str = "demo_nodes_py.topics.listener";

/// Writes the prefix. `demo_nodes_py` is the folder of that package, and `launch_ros` of
/// the one that tests look for.
pub fn write_prefix(prefix: &Path, demo_nodes_py: &Path, launch_ros: &Path) -> Result<()> {
    let setup = demo_nodes_py.join("setup.py");
    let text = fs::read_to_string(&setup).with_context(|| format!("read {}", setup.display()))?;
    for (name, module) in entry_points(&text) {
        let script = ENTRY_POINT.replace("MODULE", module);
        write_program(prefix, "demo_nodes_py", name, &script)?;
    }
    let listener = ENTRY_POINT.replace("MODULE", LISTENER);
    write_program(prefix, "lifecycle", "lifecycle_listener", &listener)?;
    write_program(
        prefix,
        "rclcpp_components",
        "component_container",
        CONTAINER,
    )?;
    add_package(prefix, "launch_ros")?;
    let share = prefix.join("share/launch_ros/package.xml");
    fs::copy(launch_ros.join("package.xml"), share).context("copy package.xml")?;
    Ok(())
}

/// The lines `'name = module:main',` of a `setup.py`.
fn entry_points(setup: &str) -> impl Iterator<Item = (&str, &str)> {
    setup.lines().filter_map(|line| {
        let (name, function) = line.trim().strip_prefix('\'')?.split_once(" = ")?;
        let (module, rest) = function.split_once(":main'")?;
        (rest == ",").then_some((name, module))
    })
}

fn add_package(prefix: &Path, package: &str) -> Result<()> {
    let index = prefix.join("share/ament_index/resource_index/packages");
    for folder in [&index, &prefix.join("share").join(package)] {
        fs::create_dir_all(folder)?;
    }
    fs::write(index.join(package), "")?;
    Ok(())
}

fn write_program(prefix: &Path, package: &str, name: &str, text: &str) -> Result<()> {
    add_package(prefix, package)?;
    let programs = prefix.join("lib").join(package);
    fs::create_dir_all(&programs)?;
    let program = programs.join(name);
    fs::write(&program, text)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_read_from_the_lines_of_a_setup_file() {
        let setup = "setup(\n    name='a',\n    entry_points={\n        'console_scripts': [\n\
                     \x20           'talk = demo.topics.talk:main',\n\
                     \x20           'other = demo.other:run',\n        ],\n    },\n)\n";
        let found: Vec<_> = entry_points(setup).collect();
        assert_eq!(found, [("talk", "demo.topics.talk")]);
    }
}
