//! Packages: `cargo xtask dist [--target MACHINE] [--host-glibc]`, and of the crates for
//! the registry: `cargo xtask dist --crates`.
//!
//! Builds `pteros` with profile `dist` for Linux, without and with Zenoh. Of each variant
//! it writes an archive and a Debian package to `dist-packages` in the build folder, and
//! of the first one the wheel; then SHA-256 checksums. Archive and Debian package hold the
//! stripped program, the middleware plug-ins that `pteros rmw install` copies, man pages
//! and shell completions. All is linked by zig against glibc 2.28 (Debian 10, RHEL 8), or
//! with `--host-glibc` against this machine's. Each package is unpacked and run before the
//! task ends: by the emulator, if it is for another processor.

mod crates;
mod deb;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::checkout::root;
use crate::machine::Machine;
use crate::package_build::{Linker, Options, PackageBuild};
use crate::peers::target_folder;
use crate::plug_ins::{INSTALLED, PLUG_INS};
use crate::wheel;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The middleware plug-ins, where the command finds them.
const PLUG_IN_FOLDER: &str = "lib/pteros";

const SUMS: &str = "SHA256SUMS";

/// A node of the wheel publishes and hears. `python3 -c` runs it.
const WHEEL_CHECK: &str = "
import time
import rclpy
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node('packed')
heard = []
node.create_subscription(String, 'packed', lambda message: heard.append(message.data), 10)
publisher = node.create_publisher(String, 'packed', 10)
node.create_timer(0.1, lambda: publisher.publish(String(data='heard')))
end = time.monotonic() + 60
while not heard and time.monotonic() < end:
    rclpy.spin_once(node, timeout_sec=1.0)
print(heard[0])
rclpy.try_shutdown()
";

/// Loads a plug-in as rmw_implementation does, looks up a function for each kind of entity,
/// and asks for its name. It needs no ROS 2.
const PLUG_IN_CHECK: &str = "
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
for name in ('init create_node create_publisher publish create_subscription take create_client '
             'send_request create_service take_response create_wait_set wait destroy_wait_set '
             'create_guard_condition get_node_names serialize deserialize shutdown').split():
    getattr(library, f'rmw_{name}')
identifier = library.rmw_get_implementation_identifier
identifier.restype = ctypes.c_char_p
print(identifier().decode())
";

/// A variant of the packages.
#[derive(Clone, Copy)]
struct Variant {
    /// The name of its packages.
    package: &'static str,
    /// Cargo's features of the program.
    features: &'static str,
    has_zenoh: bool,
}

/// All variants. The second one can do what the first one can.
const VARIANTS: [Variant; 2] = [
    Variant {
        package: "pteros",
        features: "full",
        has_zenoh: false,
    },
    Variant {
        package: "pteros-zenoh",
        features: "full,zenoh",
        has_zenoh: true,
    },
];

#[derive(clap::Args)]
pub struct Arguments {
    /// Link against this machine's glibc, without zig
    #[arg(long)]
    host_glibc: bool,
    #[command(flatten)]
    build: Options,
    /// Make one variant alone
    #[arg(long, value_name = "PACKAGE", value_parser = VARIANTS.map(|variant| variant.package))]
    only: Option<String>,
    /// Package the crates for the registry instead
    #[arg(long, conflicts_with_all = ["host_glibc", "target", "profile", "only"])]
    crates: bool,
}

/// Builds the packages. Returns what was written.
pub fn run(arguments: &Arguments) -> Result<String> {
    if arguments.crates {
        return crates::package(&checkout()?);
    }
    let linker = match arguments.host_glibc {
        true => Linker::Host,
        false => Linker::Zig,
    };
    let build = PackageBuild::open(&arguments.build, linker)?;
    let folder = target_folder()?.join("dist-packages");
    remove_old(&folder, build.machine)?;
    let mut report = String::new();
    let is_wanted = |variant: &&Variant| {
        let only = arguments.only.as_ref();
        only.is_none_or(|only| only == variant.package)
    };
    for variant in VARIANTS.iter().filter(is_wanted) {
        // Both programs have one name in cargo's folder: one is packed before the next.
        build.build("pteros-cli", variant.features)?;
        let zenoh = if variant.has_zenoh { "zenoh" } else { "" };
        for plug_in in PLUG_INS {
            build.build(plug_in.package, zenoh)?;
        }
        report += &pack(&build, &folder, *variant)?;
        if !variant.has_zenoh {
            report += &pack_wheel(&build, &folder)?;
        }
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        // A run for another machine has folders here.
        if entry.path().is_file() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    let sums = run_tool(Command::new("sha256sum").args(&names).current_dir(&folder))?;
    fs::write(folder.join(SUMS), &sums)?;
    Ok(format!("{}:\n{report}{sums}", folder.display()))
}

/// Makes the folder, and removes what an earlier run has made for the machine.
fn remove_old(folder: &Path, machine: &Machine) -> Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_old = path.is_dir() || name == SUMS;
        if is_old || name.contains(machine.name) || name.contains(machine.debian) {
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.with_context(|| format!("remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes and checks the packages of what has been built last. Returns a line about them.
fn pack(build: &PackageBuild, folder: &Path, variant: Variant) -> Result<String> {
    let package = variant.package;
    let program = build.built("pteros")?;
    let mut needs = build.check_file(&program)?;
    for plug_in in PLUG_INS {
        needs = needs.max(build.check_file(&build.built(plug_in.library)?)?);
    }
    let machine = build.machine;
    let name = format!("{package}-{VERSION}-{}-linux", machine.name);
    let tree = folder.join(&name);
    stage(build, &tree)?;
    let archive = folder.join(format!("{name}.tar.gz"));
    tar(folder, &name, &archive)?;
    let debian = folder.join(format!("{package}_{VERSION}_{}.deb", machine.debian));
    deb::write(&tree, &debian, variant, machine, needs)?;

    check_archive(build, folder, &archive, variant)?;
    deb::check(build, folder, &debian, variant)?;
    fs::remove_dir_all(&tree)?;
    let bytes = fs::metadata(&program)?.len();
    Ok(format!(
        "{package}: a program of {:.1} MB, needs glibc {needs} or newer\n",
        bytes as f64 / 1e6
    ))
}

/// Builds the wheel with the command that has been built last, and runs it. Returns a
/// line about it.
fn pack_wheel(build: &PackageBuild, folder: &Path) -> Result<String> {
    build.build("pteros-python", "")?;
    let place = folder.join("check-wheel");
    // The folder has wheels of other machines, which the packer would remove.
    let packed = PathBuf::from(wheel::pack(build, &place)?);
    let wheel = folder.join(packed.file_name().context("the name of the wheel")?);
    fs::rename(&packed, &wheel).context("move the wheel")?;
    let [wheel_path, place_path] = [&wheel, &place].map(|path| path.to_string_lossy());
    let unzip = ["-m", "zipfile", "-e", &wheel_path, &place_path];
    run_tool(Command::new("python3").args(unzip))?;
    let variables = [
        ("PYTHONPATH", &*place_path),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"),
    ];
    let heard =
        run_tool(&mut build.program(Path::new("python3"), &variables, &["-c", WHEEL_CHECK])?)?;
    fs::remove_dir_all(&place)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    ensure!(heard.trim() == "heard", "{name} says {heard:?}");
    Ok(format!("{name}: a node of Python hears its own message\n"))
}

fn checkout() -> Result<PathBuf> {
    root().canonicalize().context("find the checkout")
}

/// Lays out what both packages hold, as below `/usr`.
fn stage(build: &PackageBuild, tree: &Path) -> Result<()> {
    let root = checkout()?;
    let place = |path: &str| -> Result<PathBuf> {
        let path = tree.join(path);
        let folder = path.parent().context("a path in the package")?;
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(path)
    };
    let program = place("bin/pteros")?;
    fs::copy(build.built("pteros")?, &program).context("copy the program")?;
    for plug_in in PLUG_INS {
        let copy = place(&format!("{PLUG_IN_FOLDER}/{}", plug_in.library))?;
        fs::copy(build.built(plug_in.library)?, copy).context("copy a plug-in")?;
    }
    for (shell, path) in [
        ("bash", "share/bash-completion/completions/pteros"),
        ("zsh", "share/zsh/vendor-completions/_pteros"),
        ("fish", "share/fish/vendor_completions.d/pteros.fish"),
    ] {
        let script = run_tool(&mut build.program(&program, &[], &["completion", shell])?)?;
        fs::write(place(path)?, script)?;
    }
    let pages = place("share/man/man1/pteros.1")?;
    let pages = pages.parent().context("the folder of man pages")?;
    run_tool(&mut build.program(&program, &[], &["man", &pages.to_string_lossy()])?)?;
    for page in fs::read_dir(pages)? {
        run_tool(Command::new("gzip").args(["-9", "-n"]).arg(page?.path()))?;
    }
    for document in ["LICENSE", "README.md", "CHANGELOG.md"] {
        let path = place(&format!("share/doc/pteros/{document}"))?;
        fs::copy(root.join(document), path)?;
    }
    Ok(())
}

/// Packs `name` of a folder: the same bytes for the same content, readable for every
/// user, whatever the umask of the build.
fn tar(folder: &Path, name: &str, archive: &Path) -> Result<()> {
    run_tool(
        Command::new("tar")
            .args(["--create", "--gzip", "--sort=name", "--mtime=@0"])
            .args(["--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=u=rwX,go=rX", "--file"])
            .arg(archive)
            .arg("--directory")
            .arg(folder)
            .arg(name),
    )?;
    Ok(())
}

/// Unpacks the archive elsewhere and runs its program.
fn check_archive(
    build: &PackageBuild,
    folder: &Path,
    archive: &Path,
    variant: Variant,
) -> Result<()> {
    let place = folder.join("check");
    fs::create_dir_all(&place)?;
    run_tool(
        Command::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(archive)
            .args(["--strip-components=1", "--directory"])
            .arg(&place),
    )?;
    check_tree(build, &place, variant)?;
    build.check_pairs(&place.join("bin/pteros"))?;
    fs::remove_dir_all(&place)?;
    Ok(())
}

/// Checks an unpacked package: the program runs, the plug-ins answer, and nothing is
/// missing.
fn check_tree(build: &PackageBuild, tree: &Path, variant: Variant) -> Result<()> {
    let program = tree.join("bin/pteros");
    let run = |words: &[&str]| run_tool(&mut build.program(&program, &[], words)?);
    let version = run(&["--version"])?;
    ensure!(
        version.trim() == format!("pteros {VERSION}"),
        "the packed program says {version:?}"
    );
    // An emulator translates the processes of the demo while they start.
    let seconds = if build.is_emulated() { "10" } else { "2" };
    run(&["demo", "--seconds", seconds])?;
    check_zenoh(build, &program, variant)?;
    for plug_in in PLUG_INS {
        let (overlay, distribution) = (tree.join("overlay"), plug_in.distribution);
        let prefix = overlay.to_string_lossy();
        let install = ["rmw", "install", "--no-check", "--distro", distribution];
        let said = run(&[&install[..], &["--prefix", &prefix]].concat())?;
        let library = overlay.join("lib").join(INSTALLED);
        ensure!(
            library.is_file() && said.contains(&format!("for ROS 2 {distribution}")),
            "the packed program installs no {INSTALLED} for {distribution}: {said}"
        );
        let words = ["-c", PLUG_IN_CHECK, &library.to_string_lossy()];
        let said = run_tool(&mut build.program(Path::new("python3"), &[], &words)?)?;
        ensure!(
            said.trim() == "rmw_pteros_cpp",
            "the plug-in for {distribution} says {said:?}"
        );
        fs::remove_dir_all(&overlay)?;
    }
    for part in [
        "share/man/man1/pteros.1.gz",
        "share/man/man1/pteros-topic-echo.1.gz",
        "share/bash-completion/completions/pteros",
        "share/doc/pteros/LICENSE",
    ] {
        ensure!(tree.join(part).is_file(), "the package lacks {part}");
    }
    Ok(())
}

/// Checks that the program joins a network of Zenoh, or refuses to with the way out. It
/// reaches nobody.
fn check_zenoh(build: &PackageBuild, program: &Path, variant: Variant) -> Result<()> {
    let alone = r#"mode="peer";connect/endpoints=[];listen/endpoints=["tcp/127.0.0.1:0"]"#;
    let variables = [("ZENOH_CONFIG_OVERRIDE", alone)];
    let words = ["node", "list", "--ros-args", "--wire", "zenoh"];
    let output = build
        .program(program, &variables, &words)?
        .output()
        .context("run the packed program with Zenoh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() == variant.has_zenoh
            && (variant.has_zenoh || said.contains("feature \"zenoh\"")),
        "the program of {} with the Zenoh transport: {}: {said}",
        variant.package,
        output.status
    );
    Ok(())
}

/// Runs a tool and returns what it printed.
fn run_tool(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("run {program}; is it installed?"))?;
    ensure!(
        output.status.success(),
        "{program} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).with_context(|| format!("read the output of {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The image is not built here: it needs Docker and a network.
    #[test]
    fn the_dockerfile_has_the_declared_rust_version_and_builds_this_package() {
        let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        let (docker, workspace) = (read("Dockerfile"), read("Cargo.toml"));
        let version = workspace.split("rust-version = \"").nth(1).unwrap();
        let version = version.split('"').next().unwrap();
        assert!(
            docker.contains(&format!("FROM rust:{version}-")),
            "{docker}"
        );
        // The image names its toolchain by the full version, which the variable holds.
        assert!(
            docker.contains("ENV RUSTUP_TOOLCHAIN=$RUST_VERSION\n"),
            "{docker}"
        );
        assert!(
            docker.contains("--profile dist --package pteros-cli --features full\n"),
            "{docker}"
        );
        assert!(workspace.contains("[profile.dist]"), "{workspace}");
    }

    #[test]
    fn a_run_removes_packages_of_its_own_machine_alone() {
        let folder = std::env::temp_dir().join(format!("pteros-dist-{}", std::process::id()));
        fs::create_dir_all(folder.join("check")).unwrap();
        let others = ["pteros-0.1.0-x86_64-linux.tar.gz", "pteros_0.1.0_amd64.deb"];
        let own = [
            "pteros-0.1.0-aarch64-linux.tar.gz",
            "pteros_0.1.0_arm64.deb",
            "pteros-0.1.0-cp310-abi3-manylinux_2_28_aarch64.whl",
            SUMS,
        ];
        for name in own.iter().chain(&others) {
            fs::write(folder.join(name), "").unwrap();
        }
        remove_old(&folder, &crate::machine::AARCH64).unwrap();
        let left = fs::read_dir(&folder).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(left, others);
    }
}
