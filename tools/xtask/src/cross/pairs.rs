//! A talker and a listener on two processors, in a private network of this machine:
//! by UDP, and by shared memory.
//!
//! The emulated program and the one of this machine are processes of one host, user and
//! network, so shared memory is what they choose, unless their byte orders differ.
//! `pteros topic why` says which path a pair has.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::board::Board;
use super::foreign_root::ForeignRoot;
use super::target::{Target, select};
use crate::namespace;
use crate::peers::target_folder;

/// The task that runs inside of the private network. Its arguments are the target's name
/// and the command of a package, if it is that one.
const INSIDE_TASK: &str = "cross-pairs-inside";
/// Messages that the listener hears.
const HEARD_MIN: usize = 3;
/// An emulator translates a program while it starts.
const TIMEOUT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(300);

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Here,
    Target,
}

/// Runs every pair in a private network. Returns how many there are.
pub fn run_in_namespace(target: &Target, packed: Option<&Path>) -> Result<usize> {
    let own = std::env::current_exe()?;
    let mut command = namespace::command(true, &own.to_string_lossy())?;
    command
        .args([INSIDE_TASK, target.machine.name])
        .args(packed);
    let status = command.status()?;
    ensure!(
        status.success(),
        "a talker and a listener on {} do not meet, see above",
        target.machine.name
    );
    Ok(pairs().count())
}

/// Runs every pair, inside of the network.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let (name, packed) = match arguments {
        [name] => (name, None),
        [name, packed] => (name, Some(packed)),
        _ => bail!("usage: {INSIDE_TASK} TARGET [COMMAND]"),
    };
    let [target] = select(std::slice::from_ref(name))?[..] else {
        bail!("usage: {INSIDE_TASK} TARGET [COMMAND]");
    };
    let programs = Programs {
        emulated: match packed {
            None => Emulated::Built(ForeignRoot::existing()?),
            Some(packed) => Emulated::Packed(Board::existing(target)?, packed.clone()),
        },
        target,
        here: host_program()?,
    };
    for (talker, listener, shared_memory) in pairs() {
        let path = match (shared_memory, target.is_big_endian && talker != listener) {
            (true, false) => "by shared memory",
            (true, true) => OTHER_BYTE_ORDER,
            (false, _) => "by UDP",
        };
        let name = format!(
            "{} talker, {} listener, {path}",
            programs.name(talker),
            programs.name(listener)
        );
        run_pair(&programs, talker, listener, shared_memory, path).context(name.clone())?;
        println!("{name}: ok");
    }
    Ok(())
}

/// Why two processes of one host do not share memory.
const OTHER_BYTE_ORDER: &str = "a process of the other byte order";

/// Talker, listener, and whether shared memory is on.
fn pairs() -> impl Iterator<Item = (Side, Side, bool)> {
    let sides = [
        (Side::Target, Side::Target),
        (Side::Target, Side::Here),
        (Side::Here, Side::Target),
    ];
    let both = |(talker, listener)| [false, true].map(|memory| (talker, listener, memory));
    sides.into_iter().flat_map(both)
}

/// The command of this machine, which `cargo build -p pteros-cli` has made.
pub fn host_program() -> Result<PathBuf> {
    Ok(target_folder()?.join("debug/pteros"))
}

/// The command of the target.
enum Emulated {
    /// The one that cargo has built in the root.
    Built(ForeignRoot),
    /// One of a package, on a board.
    Packed(Board, String),
}

struct Programs {
    emulated: Emulated,
    target: &'static Target,
    here: PathBuf,
}

impl Programs {
    fn name(&self, side: Side) -> &'static str {
        match side {
            Side::Here => std::env::consts::ARCH,
            Side::Target => self.target.machine.name,
        }
    }

    fn command(&self, side: Side, shared_memory: bool, words: &[&str]) -> Result<Command> {
        let state = if shared_memory { "on" } else { "off" };
        match side {
            Side::Here => {
                let mut command = Command::new(&self.here);
                command.args(words).env("PTEROS_SHARED_MEMORY", state);
                Ok(command)
            }
            Side::Target => {
                let variables = [format!("PTEROS_SHARED_MEMORY={state}")];
                match &self.emulated {
                    Emulated::Built(root) => root.program(self.target, "pteros", &variables, words),
                    Emulated::Packed(board, program) => {
                        board.command(&variables, &[&[program.as_str()], words].concat())
                    }
                }
            }
        }
    }

    fn start(
        &self,
        side: Side,
        shared_memory: bool,
        words: &[&str],
        log: &Path,
    ) -> Result<Process> {
        let log_file = File::create(log).with_context(|| format!("write {}", log.display()))?;
        let child = self
            .command(side, shared_memory, words)?
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file)
            .spawn()
            .with_context(|| format!("start pteros {}", words.join(" ")))?;
        Ok(Process(child))
    }
}

/// A started program, ended with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `path` is what `pteros topic why` says of it.
fn run_pair(
    programs: &Programs,
    talker: Side,
    listener: Side,
    shared_memory: bool,
    path: &str,
) -> Result<()> {
    let folder = target_folder()?.join("cross");
    let [said, heard] = ["talker.log", "listener.log"].map(|name| folder.join(name));
    let _listener = programs.start(listener, shared_memory, &["demo", "listener"], &heard)?;
    let _talker = programs.start(talker, shared_memory, &["demo", "talker"], &said)?;
    let began = Instant::now();
    loop {
        let count = fs::read_to_string(&heard)?.matches("I heard").count();
        if count >= HEARD_MIN {
            let why = programs
                .command(Side::Here, shared_memory, &["topic", "why", "/chatter"])?
                .output()
                .context("run pteros topic why")?;
            let why = String::from_utf8_lossy(&why.stdout).into_owned();
            if why.contains(path) {
                return Ok(());
            }
            ensure!(
                began.elapsed() < TIMEOUT,
                "{count} messages, but pteros topic why says: {why}"
            );
        }
        ensure!(
            began.elapsed() < TIMEOUT,
            "{count} messages in {} s; the talker says: {}; the listener says: {}",
            TIMEOUT.as_secs(),
            fs::read_to_string(&said)?,
            fs::read_to_string(&heard)?
        );
        std::thread::sleep(PAUSE);
    }
}
