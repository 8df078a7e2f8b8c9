//! The stacks that are compared, each in its settings, and how their programs
//! are started. Which programs these are: [`crate::programs`].

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::Process;

/// What of the caller's environment no contestant sees.
const SET_BY_US: [&str; 16] = [
    "CYCLONEDDS_URI",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "HOST_SECURITY",
    "PTEROS_SHARED_MEMORY",
    "PTEROS_LOCAL_FRAGMENT_BYTES",
    "PTEROS_TRACE",
    "ROS_DOMAIN_ID",
    "ROS_HOSTNAME",
    "ROS_IP",
    "ROS_LOCALHOST_ONLY",
    "ROS_MASTER_URI",
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_STRATEGY",
    "ROS_STATIC_PEERS",
];

/// The name of the floor, which answers some rows only.
pub const FLOOR: &str = "floor";
/// ROS 1, whose programs need a master beside them.
pub const ROS1: &str = "ros1";
/// Ours.
pub const PTEROS: &str = "pteros";

/// Cyclone's settings for large samples: datagrams as large as UDP has them,
/// fragments to match, socket buffers for one 4 MB sample, and a writer that
/// does not stop for acknowledgements below 16 MB. The last three were chosen
/// by trying them out at each size.
pub const CYCLONE_TUNED: &str = "<General><MaxMessageSize>65500B</MaxMessageSize>\
     <FragmentSize>65000B</FragmentSize></General>\
     <Internal><SocketReceiveBufferSize min=\"4MB\"/><SocketSendBufferSize min=\"4MB\"/>\
     <Watermarks><WhcHigh>16MB</WhcHigh></Watermarks></Internal>";

/// One stack in one configuration.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// What tables call it.
    pub name: &'static str,
    /// Whose it is: `cyclone` for `cyclone-tuned`.
    pub stack: &'static str,
    /// Its program.
    pub program: PathBuf,
    /// Words before the verb, where the program is more than a contestant.
    pub leading: &'static [&'static str],
    /// What its environment says, beside what everybody's does.
    pub environment: Vec<(&'static str, String)>,
    /// What it is, for the report's head.
    pub about: &'static str,
}

/// One of the list: name, stack, program, settings and a word about it.
struct Entry(
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// In the order of the report.
#[rustfmt::skip]
const LIST: &[Entry] = &[
    Entry(FLOOR, FLOOR, "floor", &[], "futex, eventfd, UDP and memcpy without any middleware"),
    Entry("cyclone", "cyclone", "cyclone-host", &[], "Cyclone DDS 0.10.2 (Debian), default; UDP, it has no shared memory"),
    Entry("cyclone-tuned", "cyclone", "cyclone-host", &[("CYCLONEDDS_URI", CYCLONE_TUNED)], "the same with large datagrams, buffers and write cache"),
    Entry("fastdds", "fastdds", "fastdds-host", &[], "Fast DDS 2.9.1 (Debian), default: shared-memory transport"),
    Entry("fastdds-sharing", "fastdds", "fastdds-host", &[("HOST_DATA_SHARING", "on")], "the same with types of fixed size and data sharing"),
    Entry("iceoryx2", "iceoryx2", "iceoryx2-host", &[], "iceoryx2 0.10, with its event service where the reader sleeps"),
    Entry("zenoh", "zenoh", "zenoh-host", &[], "Zenoh 1.10 peers over TCP, with shared memory for what is large or lent"),
    Entry("zenoh-low", "zenoh", "zenoh-host", &[("HOST_LOWLATENCY", "on")], "the same with its low-latency transport"),
    Entry(ROS1, ROS1, "roscpp-host", &[], "ROS 1: roscpp (Debian) over TCPROS, with a master; it has no policies"),
    Entry(PTEROS, PTEROS, "host-peer", &[], "this stack, by the path that it chooses"),
    Entry("pteros-udp", PTEROS, "host-peer", &[("PTEROS_SHARED_MEMORY", "off")], "the same with shared memory switched off"),
];

/// All names, for errors and help.
pub fn names() -> Vec<&'static str> {
    LIST.iter().map(|entry| entry.0).collect()
}

/// Whose a contestant is; empty for a name that nobody has.
pub fn stack_of(name: &str) -> &'static str {
    let found = LIST.iter().find(|entry| entry.0 == name);
    found.map_or("", |entry| entry.1)
}

/// Other stacks' names, in the order of the report.
pub fn peer_stacks() -> Vec<&'static str> {
    let mut stacks: Vec<&str> = LIST.iter().map(|entry| entry.1).collect();
    stacks.dedup();
    stacks.retain(|stack| ![FLOOR, PTEROS].contains(stack));
    stacks
}

/// All of them. `ours` is the program that speaks for Pteros, `leading` its
/// first words; the others' programs are in `peers`.
pub fn all(peers: &Path, ours: &Path, leading: &'static [&'static str]) -> Vec<Contestant> {
    let entry = |&Entry(name, stack, program, environment, about): &Entry| {
        let is_ours = stack == PTEROS;
        Contestant {
            name,
            stack,
            program: match is_ours {
                true => ours.to_owned(),
                false => peers.join(program),
            },
            leading: if is_ours { leading } else { &[] },
            environment: environment
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            about,
        }
    };
    LIST.iter().map(entry).collect()
}

impl Contestant {
    /// Whether its program could be built.
    pub fn is_there(&self) -> bool {
        self.program.exists()
    }

    /// Whether it is Pteros, in whatever settings.
    pub fn is_ours(&self) -> bool {
        self.stack == PTEROS
    }

    /// Starts one process, on `cpu` if given; `line` is split at blanks.
    ///
    /// # Errors
    /// The system's.
    pub fn start(&self, line: &str, cpu: Option<u32>) -> Result<Process> {
        let cpu = cpu.map(|cpu| cpu.to_string());
        let before: Vec<&str> = match &cpu {
            Some(cpu) => vec!["taskset", "-c", cpu],
            None => Vec::new(),
        };
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        self.start_behind(&before, &words)
    }

    /// The same behind the words of commands that become what they are given
    /// (`chrt -f 80`, `ip netns exec left`). The program itself has no right to
    /// exceed the kernel's limits of buffers, and dies with the starting thread.
    ///
    /// # Errors
    /// The system's.
    pub fn start_behind(&self, before: &[&str], line: &[String]) -> Result<Process> {
        let guarded = ["setpriv", "--bounding-set", "-net_admin", "--pdeathsig"];
        let mut words = before.to_vec();
        words.extend(guarded);
        words.extend(["KILL", "--"]);
        let [program, rest @ ..] = words.as_slice() else {
            bail!("nothing to start");
        };
        let mut command = Command::new(program);
        command.args(rest);
        for variable in SET_BY_US {
            command.env_remove(variable);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg(&self.program).args(self.leading);
        command.args(line);
        Process::start(self.name, &mut command)
    }
}

/// Picks contestants by name, all of them when none is named.
///
/// # Errors
/// A name that nobody has.
pub fn chosen(all: Vec<Contestant>, wanted: &[String]) -> Result<Vec<Contestant>> {
    for name in wanted {
        if !names().contains(&name.as_str()) {
            bail!("--contestants {name}: expected {}", names().join(", "));
        }
    }
    let is_wanted = |c: &Contestant| wanted.is_empty() || wanted.iter().any(|w| w == c.name);
    Ok(all.into_iter().filter(is_wanted).collect())
}
