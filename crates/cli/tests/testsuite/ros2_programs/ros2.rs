//! An installed ROS 2, and programs of it that run.

use crate::ros2_programs::{LINE_MAX, OTHERS, PLUG_IN};
use crate::support::{self, Domain};
use pteros_test_support::program as test_support;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// An installation, and a folder with the plug-in alone.
#[derive(Clone)]
pub struct Ros2 {
    /// The file to source; none if that was done.
    setup: Option<PathBuf>,
    pub prefix: PathBuf,
    pub plug_in: PathBuf,
    /// Variables of its programs, besides the usual ones.
    variables: Vec<(&'static str, String)>,
}

impl Ros2 {
    /// The installation, or none with a sentence.
    pub fn find() -> Option<Self> {
        let named = std::env::var_os("PTEROS_ROS2").filter(|value| !value.is_empty());
        let list = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let sourced = std::env::split_paths(&list).find(|p| p.join("share/rmw").is_dir());
        let prefix = named.clone().map(PathBuf::from).or(sourced);
        let Some((prefix, plug_in)) = prefix.zip(plug_in_folder("librmw_pteros_cpp.so")) else {
            println!(
                "skipped: no ROS 2 is sourced or named by PTEROS_ROS2, or no plug-in is built"
            );
            return None;
        };
        Some(Self {
            setup: named.map(|_| prefix.join("setup.bash")),
            prefix,
            plug_in,
            variables: Vec::new(),
        })
    }

    /// A Humble with that prefix; none if its plug-in is not built. Its other middlewares
    /// have no discovery range, so its programs use multicast.
    pub fn humble(prefix: PathBuf) -> Option<Self> {
        let humble = Self {
            setup: Some(prefix.join("setup.bash")),
            plug_in: plug_in_folder("librmw_pteros_cpp_humble.so")?,
            prefix,
            variables: Vec::new(),
        };
        Some(humble.on_subnet())
    }

    /// The same, for programs that meet others by multicast.
    pub fn on_subnet(self) -> Self {
        let range = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET".to_owned());
        Self {
            variables: vec![range],
            ..self
        }
    }

    /// The same, for programs in an enclave.
    pub fn secured(&self, keystore: &Path, enclave: &str) -> Self {
        self.with(&secured(keystore, enclave))
    }

    /// The same, for programs with these variables, too.
    pub fn with(&self, variables: &[(&'static str, String)]) -> Self {
        let mut changed = self.clone();
        changed.variables.extend_from_slice(variables);
        changed
    }

    /// Makes a keystore with these enclaves, for the domain.
    pub fn keystore(&self, domain: &Domain, name: &str, enclaves: &[&str]) -> PathBuf {
        let keystore = self.plug_in.join(name);
        let words = format!("security init {} -e", keystore.display());
        let words = words.split(' ').chain(enclaves.iter().copied());
        let made = support::finish(domain.command(words));
        assert_eq!(made.code, Some(0), "{}", made.err);
        keystore
    }

    pub fn has(&self, program: &str) -> bool {
        self.path(program).is_some()
    }

    /// The path of `package/program`, or of a command such as `ros2`.
    pub fn path(&self, program: &str) -> Option<PathBuf> {
        let list = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let sourced = std::env::split_paths(&list);
        let place = match program.contains('/') {
            true => Path::new("lib").join(program),
            false => Path::new("bin").join(program),
        };
        let mut prefixes = std::iter::once(self.prefix.clone()).chain(sourced);
        prefixes.find_map(|prefix| {
            let path = prefix.join(&place);
            path.is_file().then_some(path)
        })
    }

    pub fn has_middleware(&self, rmw: &str) -> bool {
        rmw == PLUG_IN || self.prefix.join(format!("lib/lib{rmw}.so")).is_file()
    }

    /// The middlewares of a mixed graph: the plug-in, and the others that are there.
    pub fn others(&self) -> impl Iterator<Item = &'static str> {
        OTHERS.into_iter().filter(|rmw| self.has_middleware(rmw))
    }

    /// The plug-in, and the others that are there.
    pub fn middlewares(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(PLUG_IN).chain(self.others())
    }

    /// Starts `package/program arguments…` or `ros2 verb…`.
    pub fn start(&self, domain: &Domain, rmw: &str, line: &str) -> Program {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let path = self.path(name).unwrap_or_else(|| panic!("{name}"));
        self.start_path(domain, rmw, &path, words)
    }

    pub fn start_path<'a>(
        &self,
        domain: &Domain,
        rmw: &str,
        path: &Path,
        words: impl Iterator<Item = &'a str>,
    ) -> Program {
        let mut script = String::new();
        if let Some(setup) = &self.setup {
            script += &format!(". '{}' > /dev/null\n", setup.display());
        }
        let plug_in = self.plug_in.display();
        script += &format!("export LD_LIBRARY_PATH='{plug_in}':$LD_LIBRARY_PATH\n");
        script += "exec \"$@\" 2>&1\n";
        let mut command = Command::new("bash");
        command
            .args(["-c", &script, "bash"])
            .arg(path)
            .args(words)
            .env("RMW_IMPLEMENTATION", rmw)
            .env("ROS_DOMAIN_ID", domain.id().to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("RCUTILS_COLORIZED_OUTPUT", "0")
            .env("PYTHONUNBUFFERED", "1")
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        Program::start(&mut command)
    }

    /// The Python of the installation's commands.
    fn python(&self) -> PathBuf {
        let command = self
            .path("ros2")
            .and_then(|p| std::fs::read_to_string(p).ok());
        let first = command.unwrap_or_default();
        let first = first.lines().next().unwrap_or_default().to_owned();
        first.strip_prefix("#!").unwrap_or("python3").into()
    }

    /// Starts `script.py arguments…` of this crate's tests.
    pub fn start_script(&self, domain: &Domain, rmw: &str, line: &str) -> Program {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let (script, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let script = tests.join(script);
        let words = std::iter::once(script.to_str().unwrap()).chain(arguments.split(' '));
        self.start_path(domain, rmw, &self.python(), words)
    }
}

/// A folder with that library alone, under the name of an installed plug-in. None: it is
/// not built. A build of it is beside the command, one of the tests among their parts.
pub fn plug_in_folder(library: &str) -> Option<PathBuf> {
    let command = Path::new(env!("CARGO_BIN_EXE_pteros"));
    let places = [library.to_owned(), format!("deps/{library}")];
    let mut places = places.iter().map(|place| command.with_file_name(place));
    let built = places.find(|place| place.is_file())?;
    let folder = format!("pteros_ros2_{}_{library}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    // A link: whichever test comes second finds the same one.
    let _ = std::os::unix::fs::symlink(built, folder.join("librmw_pteros_cpp.so"));
    Some(folder)
}

/// The variables of a program in an enclave.
pub fn secured(keystore: &Path, enclave: &str) -> [(&'static str, String); 4] {
    [
        ("ROS_SECURITY_KEYSTORE", keystore.display().to_string()),
        ("ROS_SECURITY_ENABLE", "true".into()),
        ("ROS_SECURITY_STRATEGY", "Enforce".into()),
        ("ROS_SECURITY_ENCLAVE_OVERRIDE", enclave.into()),
    ]
}

/// A running program. What it has printed counts for each expectation.
pub struct Program(test_support::Program);

impl Program {
    pub fn start(command: &mut Command) -> Self {
        Self(test_support::Program::start(command))
    }

    /// Waits until the output has the part.
    #[track_caller]
    pub fn expect(&mut self, part: &str) {
        let has_it = self.expect_or_end(part);
        assert!(has_it, "it ended without {part:?}:\n{}", self.seen);
    }

    /// Waits until the output has the part; false if the program ends before.
    #[track_caller]
    pub fn expect_or_end(&mut self, part: &str) -> bool {
        self.wait_for_count(part, 1)
    }

    /// How often the output has the part until now.
    pub fn count_now(&mut self, part: &str) -> usize {
        self.read_lines();
        self.seen.matches(part).count()
    }

    /// Waits until the output has the part so many times.
    #[track_caller]
    pub fn expect_count(&mut self, part: &str, count: usize) {
        let has_them = self.wait_for_count(part, count);
        assert!(has_them, "not {count} times {part:?} in:\n{}", self.seen);
    }

    #[track_caller]
    fn wait_for_count(&mut self, part: &str, count: usize) -> bool {
        let end = Instant::now() + LINE_MAX;
        while self.seen.matches(part).count() < count {
            if self.next_line(part).is_none() {
                return false;
            }
            assert!(
                Instant::now() < end,
                "no {part:?} in time in:\n{}",
                self.seen
            );
        }
        true
    }

    /// Sends SIGINT and waits for the end; checks that nothing was destroyed with an
    /// error. Returns all that it printed.
    #[track_caller]
    pub fn interrupt(mut self) -> String {
        if self.try_wait().is_none() {
            self.signal("INT");
        }
        self.wait();
        for word in ["internal error", "panicked", "Segmentation"] {
            assert!(!self.seen.contains(word), "{}", self.seen);
        }
        std::mem::take(&mut self.seen)
    }

    /// Waits for its end, without error.
    #[track_caller]
    pub fn finish(mut self) {
        let (_, status) = self.wait();
        assert!(status.success(), "{status}:\n{}", self.seen);
    }
}

impl Deref for Program {
    type Target = test_support::Program;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
