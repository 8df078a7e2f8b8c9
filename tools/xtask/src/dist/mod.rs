//! Packages of the command: `cargo xtask dist [--host-glibc]`, and of the crates for
//! the registry: `cargo xtask dist --crates`.
//!
//! Builds `pteros` with profile `dist` for Linux on this machine's processor, without and
//! with Zenoh. Of each variant it writes an archive and a Debian package to
//! `dist-packages` in the build folder, and their SHA-256 checksums. All hold the stripped program, the middleware
//! plug-ins that `pteros rmw install` copies, man pages and shell completions. Program and
//! plug-ins are linked by zig against glibc 2.28 (Debian 10, RHEL 8), or with
//! `--host-glibc` against this machine's. Each package is unpacked and its program run
//! before the task ends.

mod crates;
mod deb;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::checkout::root;
use crate::machine::Machine;
use crate::peers::target_folder;
use crate::plug_ins::{INSTALLED, PLUG_INS};
use crate::zig_build::{self, GLIBC_MIN, Glibc};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The middleware plug-ins, where the command finds them.
const PLUG_IN_FOLDER: &str = "lib/pteros";

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
    /// Package the crates for the registry instead
    #[arg(long, conflicts_with = "host_glibc")]
    crates: bool,
}

/// Builds the packages. Returns what was written.
pub fn run(arguments: &Arguments) -> Result<String> {
    if arguments.crates {
        return crates::package(&checkout()?);
    }
    let on_host = arguments.host_glibc;
    let root = checkout()?;
    let folder = target_folder()?.join("dist-packages");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("remove the packages of the last run")?;
    }
    fs::create_dir_all(&folder)?;
    let mut report = String::new();
    let mut names = Vec::new();
    for variant in VARIANTS {
        // Both programs have one name in cargo's folder: one is packed before the next.
        let features = ["--package", "pteros-cli", "--features", variant.features];
        build(&root, on_host, &features)?;
        let zenoh = if variant.has_zenoh { "zenoh" } else { "" };
        for plug_in in PLUG_INS {
            let plug_in = ["--package", plug_in.package, "--features", zenoh];
            build(&root, on_host, &plug_in)?;
        }
        let (files, line) = pack(&root, &folder, variant, on_host)?;
        names.extend(files);
        report += &line;
    }
    let sums = run_tool(Command::new("sha256sum").args(&names).current_dir(&folder))?;
    fs::write(folder.join("SHA256SUMS"), &sums)?;
    Ok(format!("{}:\n{report}{sums}", folder.display()))
}

/// Writes and checks the packages of what has been built last. Returns their names, and
/// a line about the program.
fn pack(
    root: &Path,
    folder: &Path,
    variant: Variant,
    on_host: bool,
) -> Result<([String; 2], String)> {
    let package = variant.package;
    let built = Built::find()?;
    let mut needs = needed_glibc(&built.program)?;
    for plug_in in &built.plug_ins {
        needs = needs.max(needed_glibc(plug_in)?);
    }
    ensure!(
        on_host || needs <= GLIBC_MIN,
        "{package}: the program or a plug-in needs glibc {}.{}, more than {}.{}",
        needs.0,
        needs.1,
        GLIBC_MIN.0,
        GLIBC_MIN.1
    );
    let machine = Machine::own()?;
    let name = format!("{package}-{VERSION}-{}-linux", machine.name);
    let tree = folder.join(&name);
    stage(root, &built, &tree)?;
    let archive = format!("{name}.tar.gz");
    tar(folder, &name, &folder.join(&archive))?;
    let debian = format!("{package}_{VERSION}_{}.deb", machine.debian);
    deb::write(&tree, &folder.join(&debian), variant, machine, needs)?;

    check_archive(folder, &folder.join(&archive), variant)?;
    deb::check(folder, &folder.join(&debian), variant)?;
    fs::remove_dir_all(&tree)?;
    let bytes = fs::metadata(&built.program)?.len();
    let line = format!(
        "{package}: a program of {:.1} MB, needs glibc {}.{} or newer\n",
        bytes as f64 / 1e6,
        needs.0,
        needs.1
    );
    Ok(([archive, debian], line))
}

fn checkout() -> Result<PathBuf> {
    root().canonicalize().context("find the checkout")
}

/// The stripped files of a build.
struct Built {
    program: PathBuf,
    plug_ins: Vec<PathBuf>,
}

impl Built {
    fn find() -> Result<Self> {
        let folder = target_folder()?.join(Machine::own()?.triple).join("dist");
        Ok(Self {
            program: folder.join("pteros"),
            plug_ins: PLUG_INS.map(|plug_in| folder.join(plug_in.library)).into(),
        })
    }
}

/// Builds one package of the workspace, with the features of its own.
fn build(root: &Path, on_host: bool, package: &[&str]) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    if on_host {
        cargo
            .arg("build")
            .args(["--target", Machine::own()?.triple]);
    } else {
        zig_build::add_arguments(&mut cargo).context("install zig; `--host-glibc` does without")?;
    }
    cargo.args(["--profile", "dist", "--locked"]).args(package);
    let status = cargo.status().context("run cargo")?;
    ensure!(
        status.success(),
        "the build of {} failed ({status})",
        package.join(" ")
    );
    Ok(())
}

/// The newest version of glibc's symbols that a program needs.
fn needed_glibc(program: &Path) -> Result<Glibc> {
    let symbols = run_tool(Command::new("objdump").arg("-T").arg(program))?;
    newest_glibc(&symbols).context("the program needs no glibc symbol")
}

fn newest_glibc(symbols: &str) -> Option<Glibc> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
        let mut numbers = rest[..end.unwrap_or(rest.len())].split('.');
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(Glibc(major.parse().ok()?, minor.parse().ok()?))
    });
    versions.max()
}

/// Lays out what both packages hold, as below `/usr`.
fn stage(root: &Path, built: &Built, tree: &Path) -> Result<()> {
    let program = &built.program;
    let place = |path: &str| -> Result<PathBuf> {
        let path = tree.join(path);
        let folder = path.parent().context("a path in the package")?;
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(path)
    };
    fs::copy(program, place("bin/pteros")?).context("copy the program")?;
    for plug_in in &built.plug_ins {
        let name = plug_in.file_name().unwrap_or_default();
        let copy = place(PLUG_IN_FOLDER)?.join(name);
        fs::create_dir_all(copy.parent().unwrap_or(tree))?;
        fs::copy(plug_in, copy).context("copy a plug-in")?;
    }
    for (shell, path) in [
        ("bash", "share/bash-completion/completions/pteros"),
        ("zsh", "share/zsh/vendor-completions/_pteros"),
        ("fish", "share/fish/vendor_completions.d/pteros.fish"),
    ] {
        let script = run_tool(Command::new(program).args(["completion", shell]))?;
        fs::write(place(path)?, script)?;
    }
    let pages = place("share/man/man1/pteros.1")?;
    let pages = pages.parent().context("the folder of man pages")?;
    run_tool(Command::new(program).arg("man").arg(pages))?;
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
fn check_archive(folder: &Path, archive: &Path, variant: Variant) -> Result<()> {
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
    check_tree(&place, variant)?;
    fs::remove_dir_all(&place)?;
    Ok(())
}

/// Checks an unpacked package: the program runs, and nothing is missing.
fn check_tree(tree: &Path, variant: Variant) -> Result<()> {
    let program = tree.join("bin/pteros");
    let version = run_tool(Command::new(&program).arg("--version"))?;
    ensure!(
        version.trim() == format!("pteros {VERSION}"),
        "the packed program says {version:?}"
    );
    run_tool(Command::new(&program).args(["demo", "--seconds", "2"]))?;
    check_zenoh(&program, variant)?;
    for plug_in in PLUG_INS {
        let (overlay, distribution) = (tree.join("overlay"), plug_in.distribution);
        let said = run_tool(
            Command::new(&program)
                .args([
                    "rmw",
                    "install",
                    "--no-check",
                    "--distro",
                    distribution,
                    "--prefix",
                ])
                .arg(&overlay)
                .env_remove("PTEROS_ROS2")
                .env_remove("AMENT_PREFIX_PATH"),
        )?;
        ensure!(
            overlay.join("lib").join(INSTALLED).is_file()
                && said.contains(&format!("for ROS 2 {distribution}")),
            "the packed program installs no {INSTALLED} for {distribution}: {said}"
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
fn check_zenoh(program: &Path, variant: Variant) -> Result<()> {
    let alone = r#"mode="peer";connect/endpoints=[];listen/endpoints=["tcp/127.0.0.1:0"]"#;
    let output = Command::new(program)
        .args(["node", "list", "--ros-args", "--wire", "zenoh"])
        .env("ZENOH_CONFIG_OVERRIDE", alone)
        .env_remove("ZENOH_SESSION_CONFIG_URI")
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
    fn the_newest_symbol_version_counts_as_numbers_do() {
        let symbols = "0 DF *UND* 0 (GLIBC_2.2.5) read\n0 DF *UND* 0 GLIBC_2.28 fcntl64\n\
                       0 w D *UND* 0 (GLIBC_2.4) x";
        assert_eq!(newest_glibc(symbols), Some(Glibc(2, 28)));
        assert_eq!(newest_glibc("0 DF .text pteros"), None);
    }
}
