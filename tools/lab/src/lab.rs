//! The lab: what an experiment may use. Implementations, privileges, a scratch
//! folder, and unused topic names.

use std::cell::{Cell as Counter, OnceCell, RefCell};
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::testbed::hosts::{EmulatedLink, NAMES, TwoHosts};
use crate::testbed::implementation::{PTEROS, ROS1};
use crate::testbed::programs::ROS1_MASTER;
use crate::testbed::{Implementation, MeasurementFailure, PeerProcess, network};
use anyhow::{Context, Result};

use crate::keystore::{self, Rules};
use crate::measurement::Extent;

/// The program of Pteros that is measured, next to the lab's own.
pub const WORKER_PROGRAM: &str = "pteros-lab-worker";

/// Path of the worker, next to this program.
///
/// # Errors
/// It is missing, or the path of this program is unknown.
pub fn worker() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program's own path")?;
    let program = own.with_file_name(WORKER_PROGRAM);
    if !program.is_file() {
        anyhow::bail!(
            "{} does not exist; cargo build -p pteros-lab builds it",
            program.display()
        );
    }
    Ok(program)
}

/// The command of a topology process without its task. Types are also searched in
/// `interfaces`.
///
/// # Errors
/// As [`worker`].
pub fn topology_worker(interfaces: &[PathBuf]) -> Result<Vec<String>> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut arguments = vec![text(&worker()?), TOPOLOGY.into()];
    arguments.extend(interfaces.iter().map(|folder| text(folder)));
    Ok(arguments)
}

/// The worker's verb for one process of a topology.
pub const TOPOLOGY: &str = "topology";

/// The worker's verb for a process of the benchmark of bags.
pub const BAG: &str = "bag";

/// The worker's verb for a bridge to ROS 1.
pub const BRIDGE: &str = "bridge";

/// Port of the ROS 1 master in its private network.
const ROS1_PORT: u16 = 11_311;

/// Real-time priority of measured processes, if SCHED_FIFO is allowed.
const PRIORITY: &str = "80";

/// Privileges of this process, or why one is missing.
#[derive(Clone, Debug)]
pub struct Privileges {
    /// SCHED_FIFO for measured processes.
    pub priority: Result<(), String>,
    /// `mlockall` for measured processes.
    pub memory: Result<(), String>,
    /// A private network.
    pub network: Result<(), String>,
}

/// The environment of experiments.
pub struct Lab {
    pub extent: Extent,
    /// Implementations whose programs exist.
    pub implementations: Vec<Implementation>,
    pub privileges: Privileges,
    scratch: PathBuf,
    topic_number: Counter<u64>,
    /// The last hosts and their link.
    hosts: RefCell<Option<(EmulatedLink, Result<TwoHosts, String>)>>,
    private_shared_memory: OnceCell<bool>,
    /// Folders of the enclaves, created at first use.
    enclaves: RefCell<BTreeMap<Rules, Result<PathBuf, String>>>,
    /// ROS 1 masters by host, started at first use.
    masters: RefCell<BTreeMap<Option<String>, PeerProcess>>,
}

impl Lab {
    /// A lab with temporary files in `scratch`, which is emptied.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(
        extent: Extent,
        implementations: Vec<Implementation>,
        privileges: Privileges,
        scratch: &Path,
    ) -> Result<Self> {
        if scratch.exists() {
            fs::remove_dir_all(scratch).with_context(|| format!("empty {}", scratch.display()))?;
        }
        fs::create_dir_all(scratch).with_context(|| format!("make {}", scratch.display()))?;
        Ok(Self {
            extent,
            implementations,
            privileges,
            scratch: scratch.to_owned(),
            topic_number: Counter::new(0),
            hosts: RefCell::default(),
            private_shared_memory: OnceCell::new(),
            enclaves: RefCell::default(),
            masters: RefCell::default(),
        })
    }

    /// An implementation by name.
    ///
    /// # Errors
    /// It is missing.
    pub fn implementation(&self, name: &str) -> Result<&Implementation, MeasurementFailure> {
        let found = self.implementations.iter().find(|c| c.name == name);
        found.ok_or_else(|| MeasurementFailure::Unsupported(format!("{name} is missing")))
    }

    /// A topic name that no measurement has used, nor another run.
    pub fn fresh_topic(&self) -> String {
        self.topic_number.set(self.topic_number.get() + 1);
        format!("lab{}_{}", std::process::id(), self.topic_number.get())
    }

    /// Joins the two hosts ([`NAMES`]) by that link, unless they are.
    ///
    /// # Errors
    /// Why there are none. Most often the permission to administer a network is
    /// missing.
    pub fn join_hosts(&self, link: EmulatedLink) -> Result<(), MeasurementFailure> {
        let mut hosts = self.hosts.borrow_mut();
        if hosts.as_ref().is_none_or(|(of, _)| *of != link) {
            // Only one pair exists at a time, and a master ends with its host.
            self.masters.borrow_mut().retain(|host, _| host.is_none());
            *hosts = None;
            let granted = self.privileges.network.clone();
            let join = |()| TwoHosts::join(link).map_err(|error| format!("{error:#}"));
            *hosts = Some((link, granted.and_then(join)));
        }
        match hosts.as_ref() {
            Some((_, Err(why))) => {
                let text = format!("no second host: {why}");
                Err(MeasurementFailure::Unsupported(text))
            }
            _ => Ok(()),
        }
    }

    /// Whether shared memory has a file system of its own, whose files are nobody
    /// else's. Mounts it at the first call, in a private network.
    pub fn has_private_shared_memory(&self) -> bool {
        *self.private_shared_memory.get_or_init(|| {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "tmpfs", "/dev/shm"]);
            std::env::var_os(network::VARIABLE).is_some()
                && mount.status().is_ok_and(|status| status.success())
        })
    }

    /// The implementation with DDS Security from [`keystore`], protected by `rules`.
    ///
    /// # Errors
    /// The keystore cannot be created, or the stack has no DDS Security.
    pub fn secured(
        &self,
        implementation: &Implementation,
        rules: Rules,
    ) -> Result<Implementation, MeasurementFailure> {
        let root = self.scratch.join(format!("keystore-{rules:?}"));
        let root = std::path::absolute(root).map_err(anyhow::Error::from)?;
        let make = || keystore::make(&root, rules).map_err(|error| format!("{error:#}"));
        let mut enclaves = self.enclaves.borrow_mut();
        let enclave = enclaves.entry(rules).or_insert_with(make).clone();
        let enclave = enclave.map_err(MeasurementFailure::Failed)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut implementation = implementation.clone();
        match implementation.stack {
            PTEROS => implementation.environment.extend([
                ("ROS_SECURITY_ENABLE", "true".to_owned()),
                ("ROS_SECURITY_STRATEGY", "Enforce".to_owned()),
                ("ROS_SECURITY_KEYSTORE", text(&root)),
                (
                    "ROS_SECURITY_ENCLAVE_OVERRIDE",
                    keystore::ENCLAVE.to_owned(),
                ),
            ]),
            "cyclone" | "fastdds" => implementation
                .environment
                .push(("HOST_SECURITY", text(&enclave))),
            stack => {
                return Err(MeasurementFailure::Unsupported(format!(
                    "{stack} has no DDS Security"
                )));
            }
        }
        Ok(implementation)
    }

    /// The environment of a ROS 1 program on that host. Starts the master at first
    /// use; two hosts share one, on the first host.
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
            let mut arguments: Vec<&str> =
                place.map_or_else(Vec::new, |host| TwoHosts::command_prefix(host).into());
            let port = ROS1_PORT.to_string();
            arguments.extend(["setpriv", "--pdeathsig", "KILL", "--", ROS1_MASTER]);
            arguments.extend(["--core", "-p", &port]);
            let [program, rest @ ..] = arguments.as_slice() else {
                anyhow::bail!("nothing to start");
            };
            let mut command = Command::new(program);
            command.args(rest).envs(environment(master.clone()));
            free.insert(PeerProcess::start(ROS1_MASTER, &mut command)?);
        }
        Ok(environment(own))
    }

    /// The process id of the ROS 1 master on this host, if it runs.
    pub fn ros1_master(&self) -> Option<u32> {
        self.masters.borrow().get(&None).map(PeerProcess::id)
    }

    /// A path for a program's output file.
    pub fn scratch_file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Starts a program of an implementation. `is_real_time` requests SCHED_FIFO
    /// and locked memory, if allowed.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        &self,
        implementation: &Implementation,
        is_real_time: bool,
        arguments: Vec<String>,
    ) -> Result<PeerProcess, MeasurementFailure> {
        self.start_on(None, implementation, is_real_time, arguments)
    }

    /// The same on one of the hosts, by its name.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start_on(
        &self,
        host: Option<&str>,
        implementation: &Implementation,
        is_real_time: bool,
        mut arguments: Vec<String>,
    ) -> Result<PeerProcess, MeasurementFailure> {
        let mut before: Vec<&str> =
            host.map_or_else(Vec::new, |host| TwoHosts::command_prefix(host).into());
        if is_real_time && self.privileges.priority.is_ok() {
            before.extend(["chrt", "-f", PRIORITY]);
        }
        if is_real_time && self.privileges.memory.is_ok() {
            arguments.extend(["--lock-memory".into(), "yes".into()]);
        }
        if implementation.stack == ROS1 {
            let mut implementation = implementation.clone();
            implementation.environment.extend(self.ros1(host)?);
            return Ok(implementation.start_with_prefix(&before, &arguments)?);
        }
        Ok(implementation.start_with_prefix(&before, &arguments)?)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
