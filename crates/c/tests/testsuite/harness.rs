//! Compilers, generated types, and C programs as child processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use pteros_test_support::program::Program;

/// The longest time that a program may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// Packages that the programs use.
const PACKAGES: [&str; 6] = [
    "std_msgs",
    "std_srvs",
    "example_interfaces",
    "geometry_msgs",
    "rosgraph_msgs",
    "test_msgs",
];

pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder of one run, with generated sources and the library under its installed name.
pub(crate) fn build_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        remove_folders_of_dead_processes();
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{}", std::process::id()));
        let library = pteros::interfaces::library();
        for file in pteros_typesupport::c_sources(library, &PACKAGES).unwrap() {
            let path = folder.join("types").join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file.text).unwrap();
        }
        for name in ["libpteros.so", "libpteros.so.0"] {
            std::os::unix::fs::symlink(shared_library(), folder.join(name)).unwrap();
        }
        folder
    })
}

fn remove_folders_of_dead_processes() {
    let Ok(entries) = std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("c-"));
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The shared library that Cargo has built for this test.
pub(crate) fn shared_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let library = program.with_file_name("libpteros_c.so");
    assert!(library.exists(), "{library:?} is not built");
    library
}

/// A compiler of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler {
    command: &'static str,
    language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
}

/// Compilers of C that this machine has, gcc first.
pub(crate) fn c_compilers() -> Vec<Compiler> {
    found(["gcc", "clang"], Language::C)
}

/// Compilers of C++ that this machine has.
pub(crate) fn cpp_compilers() -> Vec<Compiler> {
    found(["g++", "clang++"], Language::Cpp)
}

fn found(commands: [&'static str; 2], language: Language) -> Vec<Compiler> {
    let exists = |command: &&str| Command::new(command).arg("--version").output().is_ok();
    let commands = commands.into_iter().filter(exists);
    commands
        .map(|command| Compiler { command, language })
        .collect()
}

impl Compiler {
    /// Builds an example or a test program, with AddressSanitizer and
    /// UndefinedBehaviorSanitizer. Warnings are errors.
    pub(crate) fn build(self, source: &str) -> PathBuf {
        // Two compilers at once would only wait for each other.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock();
        let folder = build_folder();
        let name = source.replace(['/', '.'], "_");
        let program = folder.join(format!("{name}_{}", self.command.replace('+', "p")));
        if program.exists() {
            return program;
        }
        let include = crate_folder().join("include");
        let mut command = Command::new(self.command);
        command.args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-g",
            "-fsanitize=address,undefined",
        ]);
        command.arg("-fno-sanitize-recover=undefined");
        command
            .arg("-I")
            .arg(include)
            .arg("-I")
            .arg(folder.join("types"));
        match self.language {
            Language::C => command.args(["-std=gnu11", "-pedantic"]),
            Language::Cpp => command.args(["-std=c++17"]),
        };
        command.arg(crate_folder().join(source));
        let objects = PACKAGES.map(|package| self.object(package));
        command.args(objects);
        // Packages that those refer to.
        for package in [
            "builtin_interfaces",
            "unique_identifier_msgs",
            "service_msgs",
        ] {
            if folder.join("types").join(package).exists() {
                command.arg(self.object(package));
            }
        }
        command.arg("-o").arg(&program).arg("-L").arg(folder);
        command.arg(format!("-Wl,-rpath,{}", folder.display()));
        command.arg("-lpteros");
        run(&mut command);
        program
    }

    /// The tables of a package, which C compiles.
    pub(crate) fn object(self, package: &str) -> PathBuf {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock();
        let folder = build_folder().join("types");
        let c = match self.command {
            "g++" => "gcc",
            "clang++" => "clang",
            other => other,
        };
        let object = folder.join(format!("{package}_{c}.o"));
        if !object.exists() {
            let mut command = Command::new(c);
            command.args([
                "-std=c99", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", "-I",
            ]);
            command
                .arg(crate_folder().join("include"))
                .arg("-I")
                .arg(&folder);
            command.arg(folder.join(package).join(format!("{package}.c")));
            command.arg("-o").arg(&object);
            run(&mut command);
        }
        object
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
}

/// Starts a program in a domain of this host. Its errors are among its lines.
pub(crate) fn start(program: &Path, domain: u32, arguments: &[&str]) -> Program {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("UBSAN_OPTIONS", "print_stacktrace=1")
        .stderr(Stdio::piped());
    Program::start(&mut command)
}

/// All that a program prints. It must exit without error.
pub(crate) fn output(program: &Path, domain: u32, arguments: &[&str]) -> Vec<String> {
    let text = start(program, domain, arguments).finish();
    text.lines().map(str::to_owned).collect()
}
