//! What an experiment may use: contestants, rights, a folder for what programs
//! write, names that nobody has used yet.

use std::cell::{Cell as Counter, OnceCell};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pteros_testbed::hosts::{Link, TwoHosts};
use pteros_testbed::{Contestant, Failure, Process};

use crate::experiment::Extent;

/// The words that this binary is a contestant's program with.
pub const WORKER: &str = "lab-worker";

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

    /// A name that no earlier measurement had, for topics.
    pub fn fresh_topic(&self) -> String {
        self.turn.set(self.turn.get() + 1);
        format!("lab{}", self.turn.get())
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
        Ok(who.start_behind(&before, &words)?)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
