//! `cargo xtask ros2 --soak [--minutes N]`: nodes of rclcpp and rclpy talk for a long
//! time. Their memory, descriptors and threads must not grow.
//!
//! Three processes run throughout, two of rclcpp (`soak.cpp`) and one of rclpy
//! (`soak.py`). Each publishes small and large messages to all. It calls the service
//! and the action of the next, and replaces an inner node with all kinds of endpoints.
//! Guests come and go meanwhile; every other one is killed. All of them are in one
//! private network.
//!
//! The run fails if a message, an answer or a result is lost, if a guest hears
//! nothing, or if a process grows beyond [`Limits`]. The baseline is measured after a
//! tenth of the run, since tables and pools fill first. Discovery logs count apart: they
//! fill up to a fixed size before they are rewritten.

mod processes;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::bench::{Bench, PlugIn, write_log};
use crate::checkout::root;
use crate::limited_command::run_limited;
use processes::Process;
use pteros_peers::ros2::Installation;
use usage::{Limits, Usage, medians};

/// Name of the task that runs inside the private network.
const INSIDE_TASK: &str = "ros2-soak-inside";

/// Time between measurements.
const SAMPLE: Duration = Duration::from_secs(5);
/// Time between guests.
const GUEST: Duration = Duration::from_secs(6);
/// The longest that a guest may take until it has heard of everything.
const GUEST_MAX: Duration = Duration::from_secs(60);
/// The longest that messages, answers and results may take after the last one was sent.
const END_MAX: Duration = Duration::from_secs(60);
/// The longest that the compiler may take.
const COMPILE_MAX: Duration = Duration::from_secs(600);
/// The processes, and whose service and action each uses.
const PEERS: [(&str, &str); 3] = [("cpp_a", "cpp_b"), ("cpp_b", "py"), ("py", "cpp_a")];
/// Libraries of the rclcpp program.
const LIBRARIES: [&str; 11] = [
    "rclcpp",
    "rclcpp_action",
    "rcl_action",
    "rcl",
    "rmw",
    "rcutils",
    "rcpputils",
    "rosidl_runtime_c",
    "rosidl_typesupport_cpp",
    "std_msgs__rosidl_typesupport_cpp",
    "example_interfaces__rosidl_typesupport_cpp",
];

/// Builds the programs and starts the run in a private network.
pub fn run(installation: Installation, rmw: &str, minutes: u32) -> Result<bool> {
    let bench = Bench::new(installation, rmw, "ros2-soak", PlugIn::ToBuild)?;
    let program = compile(&bench)?;
    let inside = std::env::current_exe().context("find this program's own path")?;
    let words = [
        inside.display().to_string(),
        INSIDE_TASK.into(),
        minutes.to_string(),
        program.display().to_string(),
        bench.installation.python(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    println!("soak of {minutes} min on {rmw}");
    let mut command = bench.command(&words, &[])?;
    // The processes are descendants, so ROS 2's variables reach them.
    let status = command.status().context("run the soak")?;
    Ok(status.success())
}

/// Compiles `soak.cpp` with the installation's headers. Returns the program.
fn compile(bench: &Bench) -> Result<PathBuf> {
    let prefix = bench.installation.prefix();
    let program = bench.folder.join("soak");
    let include = prefix.join("include");
    let list = fs::read_dir(&include)
        .with_context(|| format!("{}: rclcpp's headers are needed", include.display()))?;
    // Packages of ROS 2 have a folder of their own within their folder. Others are
    // left out: a header of theirs could hide one of the system.
    let mut packages: Vec<PathBuf> = list
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| path.join(name).is_dir())
        })
        .collect();
    packages.sort();
    let lib = prefix.join("lib");
    let mut command = Command::new("g++");
    command
        .args(["-std=c++17", "-O1", "-w"])
        .args(packages.iter().flat_map(|path| [Path::new("-I"), path]))
        .arg(root().join("tools/xtask/src/ros2/soak/soak.cpp"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&lib)
        .arg(format!("-Wl,-rpath,{0},-rpath-link,{0}", lib.display()))
        // Templates of rclcpp use libraries that only these need.
        .arg("-Wl,--copy-dt-needed-entries")
        .args(LIBRARIES.map(|name| format!("-l{name}")))
        .arg("-lpthread");
    let output = run_limited(&mut command, COMPILE_MAX, false)?;
    let log = write_log(&bench.log("soak", "compile"), &output.text)?;
    ensure!(
        output.succeeded,
        "soak.cpp was not compiled, see {}",
        log.display()
    );
    Ok(program)
}

/// Runs the soak within the private network. Returns whether it passed.
pub fn run_inside(arguments: &[String]) -> Result<bool> {
    let [minutes, program, python] = arguments else {
        bail!("{INSIDE_TASK} is started by `cargo xtask ros2 --soak`");
    };
    let minutes: u32 = minutes.parse().context("minutes")?;
    let programs = Programs { program, python };
    let mut peers = Vec::new();
    for (name, peer) in PEERS {
        peers.push(Process::start(
            programs.command(name == "py"),
            &[name, peer],
        )?);
    }
    let mut soak = Soak {
        programs,
        peers,
        guests: Vec::new(),
        guests_done: 0,
        guests_killed: 0,
        problems: Vec::new(),
    };
    let samples = soak.talk(Duration::from_secs(60 * u64::from(minutes)))?;
    soak.finish()?;
    Ok(soak.report(&samples))
}

/// How the two programs are started.
#[derive(Clone, Copy)]
struct Programs<'a> {
    program: &'a str,
    python: &'a str,
}

impl Programs<'_> {
    fn command(self, is_python: bool) -> Command {
        if is_python {
            let mut command = Command::new(self.python);
            command.arg(root().join("tools/xtask/src/ros2/soak/soak.py"));
            return command;
        }
        Command::new(self.program)
    }
}

struct Guest {
    process: Process,
    started: Instant,
    /// It is killed as soon as it has its endpoints.
    is_killed: bool,
}

struct Soak<'a> {
    programs: Programs<'a>,
    peers: Vec<Process>,
    guests: Vec<Guest>,
    guests_done: usize,
    guests_killed: usize,
    problems: Vec<String>,
}

impl Soak<'_> {
    /// Lets all of them talk. Returns measurements of each peer.
    fn talk(&mut self, duration: Duration) -> Result<Vec<Vec<Usage>>> {
        let began = Instant::now();
        let (mut next_sample, mut next_guest) = (began + SAMPLE, began + GUEST);
        let mut samples = vec![Vec::new(); self.peers.len()];
        let mut guest_number = 0;
        while began.elapsed() < duration && self.problems.len() < 20 {
            let now = Instant::now();
            if now >= next_sample {
                next_sample += SAMPLE;
                for (peer, list) in self.peers.iter().zip(&mut samples) {
                    match Usage::of(peer.id()) {
                        Ok(usage) => list.push(usage),
                        Err(error) => self.problems.push(format!("{}: {error:#}", peer.name())),
                    }
                }
            }
            if now >= next_guest {
                next_guest += GUEST;
                self.start_guest(guest_number)?;
                guest_number += 1;
            }
            self.end_guests();
            self.read_lines();
            if let Some(ended) = self.peers.iter_mut().find_map(Process::ended) {
                self.problems.push(format!("{ended} ended early"));
                break;
            }
            // A line or a tenth of a second, whichever comes first.
            if let Some(first) = self.peers.first_mut() {
                first.wait_for_line(Duration::from_millis(100));
            }
        }
        Ok(samples)
    }

    /// Every third guest is one of rclpy, every second one is killed.
    fn start_guest(&mut self, number: usize) -> Result<()> {
        let name = format!("guest_{number}");
        let command = self.programs.command(number % 3 == 2);
        let process = Process::start(command, &["--guest", &name, "cpp_a"])?;
        self.guests.push(Guest {
            process,
            started: Instant::now(),
            is_killed: number % 2 == 1,
        });
        Ok(())
    }

    fn end_guests(&mut self) {
        for mut guest in std::mem::take(&mut self.guests) {
            guest.process.read_lines();
            let has_ended = guest.process.has_ended();
            self.problems.extend(guest.process.take_problems());
            let has = |word: &str| guest.process.lines().iter().any(|line| line == word);
            if guest.is_killed && has("ready") && !has_ended {
                self.guests_killed += 1;
            } else if has_ended {
                if has("guest done") {
                    self.guests_done += 1;
                } else if !guest.is_killed {
                    let text = guest.process.lines().join("\n    ");
                    let name = guest.process.name();
                    self.problems
                        .push(format!("{name} ended early:\n    {text}"));
                }
            } else if guest.started.elapsed() > GUEST_MAX {
                let name = guest.process.name();
                self.problems
                    .push(format!("{name} did not hear of everything in time"));
            } else {
                self.guests.push(guest);
            }
        }
    }

    fn read_lines(&mut self) {
        for peer in &mut self.peers {
            peer.read_lines();
            self.problems.extend(peer.take_problems());
        }
    }

    /// Stops sending, and compares what was sent with what was received.
    fn finish(&mut self) -> Result<()> {
        self.guests.clear();
        for peer in &mut self.peers {
            peer.write("stop")?;
        }
        let deadline = Instant::now() + END_MAX;
        let mut missing = self.missing();
        while !missing.is_empty() && Instant::now() < deadline {
            if let Some(first) = self.peers.first_mut() {
                first.wait_for_line(Duration::from_millis(100));
            }
            self.read_lines();
            missing = self.missing();
        }
        self.problems.extend(missing);
        for peer in &mut self.peers {
            peer.write("end")?;
            if !peer.ends_within(END_MAX) {
                self.problems.push(format!("{} does not end", peer.name()));
            }
        }
        Ok(())
    }

    /// Messages that have not come to everybody.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for sender in &self.peers {
            for topic in ["numbers", "frames"] {
                let Some(sent) = sender.number(&format!("sent {topic} ")) else {
                    missing.push(format!(
                        "{} has open requests, or does not answer",
                        sender.name()
                    ));
                    continue;
                };
                for receiver in &self.peers {
                    let got = receiver.number(&format!("got {topic} {} ", sender.name()));
                    if got != Some(sent) {
                        missing.push(format!(
                            "{}: of {sent} {topic} of {} it has the numbers up to {got:?}",
                            receiver.name(),
                            sender.name()
                        ));
                    }
                }
            }
        }
        missing
    }

    fn report(&self, samples: &[Vec<Usage>]) -> bool {
        let mut problems = self.problems.clone();
        for (peer, list) in self.peers.iter().zip(samples) {
            let counts = [
                "sent numbers ",
                "sent frames ",
                "answered calls ",
                "answered goals ",
            ];
            let counts: BTreeMap<_, _> = counts
                .into_iter()
                .filter_map(|prefix| Some((prefix.trim(), peer.number(prefix)?)))
                .collect();
            println!("{}: {counts:?}", peer.name());
            let Some((before, after)) = medians(list) else {
                problems.push(format!("{}: too few measurements", peer.name()));
                continue;
            };
            println!("  after a tenth: {before}\n  at the end:    {after}");
            let exceeded = Limits::of(&before).exceeded_by(&after);
            let grown = exceeded.into_iter();
            problems.extend(grown.map(|what| format!("{} {what}", peer.name())));
        }
        println!(
            "guests: {} heard everything and ended, {} were killed",
            self.guests_done, self.guests_killed
        );
        if self.guests_done == 0 {
            problems.push("no guest has ended by itself".into());
        }
        for problem in &problems {
            println!("  failed: {problem}");
        }
        problems.is_empty()
    }
}
