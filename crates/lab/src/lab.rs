//! What an experiment may use: contestants, rights, a folder for what programs
//! write, names that nobody has used yet.

use std::cell::{Cell as Counter, OnceCell, RefCell};
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use pteros_testbed::contestant::{PTEROS, ROS1};
use pteros_testbed::hosts::{Link, NAMES, TwoHosts};
use pteros_testbed::programs::ROS1_MASTER;
use pteros_testbed::{Contestant, Failure, Process};

use crate::experiment::Extent;
use crate::keystore;

/// The word that the command is a worker with, where there is no other.
pub const WORKER: &str = "lab-worker";

/// The program that is measured of Pteros, beside the command.
pub const WORKER_PROGRAM: &str = "pteros-lab-worker";

/// What is measured of Pteros: [`WORKER_PROGRAM`], or the command itself where that
/// is all there is.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its first words.
    pub leading: &'static [&'static str],
}

impl Worker {
    /// Looks beside this program.
    ///
    /// # Errors
    /// The system does not tell where this program is.
    pub fn find() -> Result<Self> {
        let own = std::env::current_exe().context("find this program's own path")?;
        let small = own.with_file_name(WORKER_PROGRAM);
        Ok(match small.is_file() {
            true => Self {
                program: small,
                leading: &[],
            },
            false => Self {
                program: own,
                leading: &[WORKER],
            },
        })
    }

    /// Whether it is the command with all its verbs.
    pub fn is_command(&self) -> bool {
        !self.leading.is_empty()
    }

    /// The words that begin a process of a topology, the task excepted; types are
    /// looked for in `interfaces`, too.
    pub fn of_topology(&self, interfaces: &[PathBuf]) -> Vec<String> {
        let mut words = vec![self.program.to_string_lossy().into_owned()];
        words.extend(self.leading.iter().map(|word| (*word).to_owned()));
        words.push(TOPOLOGY.into());
        words.extend(interfaces.iter().map(|f| f.to_string_lossy().into_owned()));
        words
    }
}

/// The worker's verb for one process of a topology.
pub const TOPOLOGY: &str = "topology";

/// The worker's verb for a bridge to ROS 1.
pub const BRIDGE: &str = "bridge";

/// Where ROS 1's master listens, in its private network.
const ROS1_PORT: u16 = 11_311;

/// The priority of what is measured, where SCHED_FIFO is allowed.
const PRIORITY: &str = "80";

/// What the system allows, or why not.
#[derive(Clone, Debug)]
pub struct Rights {
    /// SCHED_FIFO for what is measured.
    pub priority: Result<(), String>,
    /// `mlockall` for what is measured.
    pub memory: Result<(), String>,
    /// A network of its own.
    pub network: Result<(), String>,
}

/// The place where experiments are run.
pub struct Lab {
    /// How much is wanted.
    pub extent: Extent,
    /// Everybody who takes part and whose program is there.
    pub contestants: Vec<Contestant>,
    /// What is allowed.
    pub rights: Rights,
    scratch: PathBuf,
    turn: Counter<u64>,
    /// Joined when they are first asked for.
    hosts: OnceCell<Result<TwoHosts, String>>,
    /// The enclave's folder.
    enclave: OnceCell<Result<PathBuf, String>>,
    /// Of ROS 1, by host, started when they are first needed.
    masters: RefCell<BTreeMap<Option<String>, Process>>,
}

impl Lab {
    /// A lab that keeps passing files in `scratch`, emptied first.
    ///
    /// # Errors
    /// The system's, with the folder.
    pub fn new(
        extent: Extent,
        contestants: Vec<Contestant>,
        rights: Rights,
        scratch: &Path,
    ) -> Result<Self> {
        if scratch.exists() {
            fs::remove_dir_all(scratch).with_context(|| format!("empty {}", scratch.display()))?;
        }
        fs::create_dir_all(scratch).with_context(|| format!("make {}", scratch.display()))?;
        Ok(Self {
            extent,
            contestants,
            rights,
            scratch: scratch.to_owned(),
            turn: Counter::new(0),
            hosts: OnceCell::new(),
            enclave: OnceCell::new(),
            masters: RefCell::default(),
        })
    }

    /// A contestant by name.
    ///
    /// # Errors
    /// It is not there.
    pub fn contestant(&self, name: &str) -> Result<&Contestant, Failure> {
        let found = self.contestants.iter().find(|c| c.name == name);
        found.ok_or_else(|| Failure::Unsupported(format!("{name} is not there")))
    }

    /// A name that no earlier measurement had, nor has another run's, for topics.
    pub fn fresh_topic(&self) -> String {
        self.turn.set(self.turn.get() + 1);
        format!("lab{}_{}", std::process::id(), self.turn.get())
    }

    /// Two hosts with a cable of 100 Mbit/s between them, as M16 has them.
    ///
    /// # Errors
    /// Why there are none: most often the right to administer a network is missing.
    pub fn hosts(&self) -> Result<&TwoHosts, Failure> {
        let join = || -> Result<TwoHosts, String> {
            self.rights.network.clone()?;
            TwoHosts::join(Link::FAST_ETHERNET).map_err(|error| format!("{error:#}"))
        };
        let joined = self.hosts.get_or_init(join);
        let no = |why: &String| Failure::Unsupported(format!("no second host: {why}"));
        joined.as_ref().map_err(no)
    }

    /// The contestant with its part of DDS Security, as [`keystore`] has it.
    ///
    /// # Errors
    /// No keystore can be made, or the stack has no such security.
    pub fn secured(&self, who: &Contestant) -> Result<Contestant, Failure> {
        let root =
            std::path::absolute(self.scratch.join("keystore")).map_err(anyhow::Error::from)?;
        let make = || keystore::make(&root).map_err(|error| format!("{error:#}"));
        let enclave = self.enclave.get_or_init(make).clone();
        let enclave = enclave.map_err(Failure::Failed)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut who = who.clone();
        match who.stack {
            PTEROS => who.environment.extend([
                ("ROS_SECURITY_ENABLE", "true".to_owned()),
                ("ROS_SECURITY_STRATEGY", "Enforce".to_owned()),
                ("ROS_SECURITY_KEYSTORE", text(&root)),
                (
                    "ROS_SECURITY_ENCLAVE_OVERRIDE",
                    keystore::ENCLAVE.to_owned(),
                ),
            ]),
            "cyclone" | "fastdds" => who.environment.push(("HOST_SECURITY", text(&enclave))),
            stack => return Err(Failure::Unsupported(format!("{stack} has no DDS Security"))),
        }
        Ok(who)
    }

    /// What a program that speaks to ROS 1 on that host must know, whose master runs
    /// from now on. Two hosts have one, on the first.
    ///
    /// # Errors
    /// The master does not start.
    pub fn ros1(&self, host: Option<&str>) -> Result<Vec<(&'static str, String)>> {
        let place = host.map(|_| NAMES[0]);
        let own = match host {
            None => "127.0.0.1".to_owned(),
            Some(name) => TwoHosts::address(name),
        };
        let master = place.map_or("127.0.0.1".to_owned(), TwoHosts::address);
        let logs = self.scratch.join("ros1").to_string_lossy().into_owned();
        let environment = |own: String| {
            vec![
                ("ROS_MASTER_URI", format!("http://{master}:{ROS1_PORT}")),
                ("ROS_IP", own),
                ("ROS_HOME", logs.clone()),
                ("ROS_LOG_DIR", logs.clone()),
            ]
        };
        let mut masters = self.masters.borrow_mut();
        let key = place.map(str::to_owned);
        if let Entry::Vacant(free) = masters.entry(key) {
            let mut words: Vec<&str> =
                place.map_or_else(Vec::new, |host| TwoHosts::words(host).into());
            let port = ROS1_PORT.to_string();
            words.extend(["setpriv", "--pdeathsig", "KILL", "--", ROS1_MASTER]);
            words.extend(["--core", "-p", &port]);
            let [program, rest @ ..] = words.as_slice() else {
                anyhow::bail!("nothing to start");
            };
            let mut command = Command::new(program);
            command.args(rest).envs(environment(master.clone()));
            free.insert(Process::start(ROS1_MASTER, &mut command)?);
        }
        Ok(environment(own))
    }

    /// The process id of ROS 1's master on this host, if it has been needed.
    pub fn ros1_master(&self) -> Option<u32> {
        self.masters.borrow().get(&None).map(Process::id)
    }

    /// A file for what a program writes.
    pub fn scratch_file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Starts a contestant's program with SCHED_FIFO and locked memory where
    /// `is_real_time` asks for it and the system allows it.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        &self,
        who: &Contestant,
        is_real_time: bool,
        words: Vec<String>,
    ) -> Result<Process, Failure> {
        self.start_on(None, who, is_real_time, words)
    }

    /// The same on one of [`Lab::hosts`], by its name.
    ///
    /// # Errors
    /// The system's.
    pub fn start_on(
        &self,
        host: Option<&str>,
        who: &Contestant,
        is_real_time: bool,
        mut words: Vec<String>,
    ) -> Result<Process, Failure> {
        let mut before: Vec<&str> = host.map_or_else(Vec::new, |host| TwoHosts::words(host).into());
        if is_real_time && self.rights.priority.is_ok() {
            before.extend(["chrt", "-f", PRIORITY]);
        }
        if is_real_time && self.rights.memory.is_ok() {
            words.extend(["--lock-memory".into(), "yes".into()]);
        }
        if who.stack == ROS1 {
            let mut who = who.clone();
            who.environment.extend(self.ros1(host)?);
            return Ok(who.start_behind(&before, &words)?);
        }
        Ok(who.start_behind(&before, &words)?)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
