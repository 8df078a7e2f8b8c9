//! Debian package (deb(5)): an `ar` archive of `debian-binary`, `control.tar.gz` and
//! `data.tar.gz`, written without Debian's tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::machine::Machine;
use crate::package_build::{Glibc, PackageBuild};
use crate::plug_ins;

use super::{PLUG_IN_FOLDER, VARIANTS, VERSION, Variant, check_tree, run_tool, tar};

/// Writes the package of `tree`, whose content goes below `/usr`.
pub(super) fn write(
    tree: &Path,
    package: &Path,
    variant: Variant,
    machine: &Machine,
    needs: Glibc,
) -> Result<()> {
    let work = tree.with_extension("deb-work");
    let (data, control) = (work.join("data"), work.join("control"));
    fs::create_dir_all(&data)?;
    fs::create_dir_all(&control)?;
    run_tool(
        Command::new("cp")
            .args(["--archive"])
            .arg(tree)
            .arg(data.join("usr")),
    )?;
    let program = fs::metadata(tree.join("bin/pteros"))?.len();
    let bytes = program + plug_ins::bytes_in(&tree.join(PLUG_IN_FOLDER))?;
    fs::write(
        control.join("control"),
        control_file(variant, machine, needs, bytes.div_ceil(1024)),
    )?;
    let mut members = vec![("debian-binary", b"2.0\n".to_vec())];
    for (folder, name) in [(&control, "control.tar.gz"), (&data, "data.tar.gz")] {
        let path = work.join(name);
        tar(folder, ".", &path)?;
        members.push((name, fs::read(&path)?));
    }
    fs::write(package, ar(&members)?)?;
    fs::remove_dir_all(&work)?;
    Ok(())
}

/// Unpacks the package and runs its program, where Debian's tool is installed.
pub(super) fn check(
    build: &PackageBuild,
    folder: &Path,
    package: &Path,
    variant: Variant,
) -> Result<()> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        println!("no dpkg-deb here: the Debian package is not unpacked");
        return Ok(());
    }
    let place = folder.join("check-deb");
    let architecture = run_tool(
        Command::new("dpkg-deb")
            .arg("--field")
            .arg(package)
            .arg("Architecture"),
    )?;
    ensure!(
        architecture.trim() == build.machine.debian,
        "{} is for {architecture:?}",
        package.display()
    );
    run_tool(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(package)
            .arg(&place),
    )?;
    check_tree(build, &place.join("usr"), variant)?;
    fs::remove_dir_all(&place)?;
    Ok(())
}

/// One package takes the place of another one: they have the same files.
fn control_file(variant: Variant, machine: &Machine, needs: Glibc, kibibytes: u64) -> String {
    let own = variant.package;
    let others = VARIANTS.iter().map(|variant| variant.package);
    let others: Vec<&str> = others.filter(|other| *other != own).collect();
    let others = others.join(", ");
    let zenoh = if variant.has_zenoh {
        " With the Zenoh transport, `pteros router` and `pteros bridge`.\n"
    } else {
        ""
    };
    format!(
        "Package: {own}\nVersion: {VERSION}\nArchitecture: {}\n\
         Maintainer: The Pteros developers <pteros@users.noreply.github.com>\n\
         Installed-Size: {kibibytes}\nDepends: libc6 (>= {needs})\nConflicts: {others}\n\
         Replaces: {others}\nSection: misc\n\
         Priority: optional\nHomepage: https://github.com/pteros/pteros\n\
         Description: command line for ROS 2 graphs\n \
         Shows, publishes and measures topics, calls services and actions, runs launch\n \
         files and checks networks, for ROS 2 nodes of any stack. Needs no ROS 2.\n \
         `pteros rmw install` installs a middleware plug-in for ROS 2\n Humble, Jazzy, Kilted or Lyrical (by the headers).\n{zenoh}",
        machine.debian
    )
}

/// An archive in the common `ar` format: a header of 60 characters per member, and
/// members at even offsets.
fn ar(members: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        ensure!(name.len() <= 16, "the name {name} is too long for ar");
        let header = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            0,
            "100644",
            bytes.len()
        );
        ensure!(header.len() == 60, "the member {name} is too large for ar");
        archive.extend(header.as_bytes());
        archive.extend(bytes);
        if !bytes.len().is_multiple_of(2) {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{AARCH64, X86_64};

    #[test]
    fn a_package_is_for_its_machine_and_needs_its_glibc() {
        for (machine, name) in [(&X86_64, "amd64"), (&AARCH64, "arm64")] {
            let file = control_file(VARIANTS[0], machine, Glibc(2, 28), 1);
            let field = format!("\nArchitecture: {name}\n");
            assert!(file.contains(&field), "{file}");
            assert!(file.contains("\nDepends: libc6 (>= 2.28)\n"), "{file}");
        }
    }

    #[test]
    fn a_package_takes_the_place_of_the_other_variant() {
        let files = VARIANTS.map(|variant| control_file(variant, &AARCH64, Glibc(2, 28), 1));
        for (own, other) in [(0, 1), (1, 0)] {
            let [own, other] = [own, other].map(|index: usize| VARIANTS[index].package);
            let file = files
                .iter()
                .find(|file| file.starts_with(&format!("Package: {own}\n")));
            let file = file.unwrap();
            for field in ["Conflicts", "Replaces"] {
                assert!(file.contains(&format!("\n{field}: {other}\n")), "{file}");
            }
            assert_eq!(
                file.contains("pteros router"),
                own == "pteros-zenoh",
                "{file}"
            );
            // Every line of the description begins with a blank.
            let description = file.split("Description: ").nth(1).unwrap();
            assert!(
                description
                    .lines()
                    .skip(1)
                    .all(|line| line.starts_with(' '))
            );
        }
    }

    #[test]
    fn members_have_headers_of_60_characters_and_even_offsets() {
        let members = [("debian-binary", b"2.0\n".to_vec()), ("odd", vec![7; 3])];
        let archive = ar(&members).unwrap();
        assert_eq!(archive.len(), 8 + 60 + 4 + 60 + 3 + 1);
        let header = std::str::from_utf8(&archive[8..68]).unwrap();
        assert!(header.starts_with("debian-binary   0 ") && header.ends_with("4         `\n"));
        assert!(ar(&[("a name of over 16 letters", vec![])]).is_err());
    }
}
