//! The implementations under test: DDS stacks and other middlewares, each with its
//! settings, and how their programs start. [`super::programs`] builds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::process::PeerProcess;

/// Environment variables of the caller that are cleared.
const CLEARED_VARIABLES: [&str; 24] = [
    "CYCLONEDDS_URI",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "HOST_ROS",
    "HOST_SECURITY",
    "PTEROS_SHARED_MEMORY",
    "PTEROS_LOCAL_FRAGMENT_BYTES",
    "PTEROS_TRACE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
    "RMW_IMPLEMENTATION",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
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
    ZENOH_OVERRIDE,
    "ZENOH_ROUTER_CHECK_ATTEMPTS",
    "ZENOH_ROUTER_CONFIG_URI",
    "ZENOH_SESSION_CONFIG_URI",
];

/// The variable with settings of a Zenoh session, which hiroz reads, too.
pub const ZENOH_OVERRIDE: &str = "ZENOH_CONFIG_OVERRIDE";

/// Sessions of one host without a router: they find each other by multicast.
const ZENOH_ON_LOOPBACK: &str = "scouting/multicast/enabled=true;\
     scouting/multicast/interface=\"lo\";listen/endpoints=[\"tcp/127.0.0.1:0\"];\
     connect/endpoints=[]";

/// The kernel baseline without middleware. It runs some measurements only.
pub const FLOOR: &str = "floor";
/// ROS 1. Its programs need a master.
pub const ROS1: &str = "ros1";
pub const PTEROS: &str = "pteros";
/// ROS 2's client library in C++, over each middleware plug-in that is found.
pub const RCLCPP: &str = "rclcpp";
/// The same in Python.
pub const RCLPY: &str = "rclpy";
/// The recorder of ROS 2, over each middleware plug-in that is found. It only records.
pub const ROSBAG2: &str = "rosbag2";
/// rclpy of Pteros's Python wheel.
pub const WHEEL: &str = "wheel";
/// The variable that selects the middleware plug-in.
pub const RMW_VARIABLE: &str = "RMW_IMPLEMENTATION";

/// Settings of Cyclone DDS for large samples: maximum UDP datagrams with matching
/// fragments, socket buffers for one 4 MB sample, and a writer that does not wait
/// for acknowledgements below 16 MB. The last three were tuned at each size.
pub const CYCLONE_TUNED: &str = "<General><MaxMessageSize>65500B</MaxMessageSize>\
     <FragmentSize>65000B</FragmentSize></General>\
     <Internal><SocketReceiveBufferSize min=\"4MB\"/><SocketSendBufferSize min=\"4MB\"/>\
     <Watermarks><WhcHigh>16MB</WhcHigh></Watermarks></Internal>";

/// An implementation under test: a stack in one configuration.
#[derive(Clone, Debug)]
pub struct Implementation {
    /// Its name in tables.
    pub name: &'static str,
    /// Its stack: `cyclone` for `cyclone-tuned`.
    pub stack: &'static str,
    pub program: PathBuf,
    /// Environment variables that differ from those of the other implementations.
    pub environment: Vec<(&'static str, String)>,
    /// A description for reports.
    pub about: &'static str,
}

/// Name, stack, program, environment and description.
struct ListEntry(
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// In the order of the report.
#[rustfmt::skip]
const LIST: &[ListEntry] = &[
    ListEntry(FLOOR, FLOOR, "floor", &[], "futex, eventfd, UDP and memcpy without any middleware"),
    ListEntry("cyclone", "cyclone", "cyclone-host", &[], "Cyclone DDS 0.10.2 (Debian), default; UDP, it has no shared memory"),
    ListEntry("cyclone-tuned", "cyclone", "cyclone-host", &[("CYCLONEDDS_URI", CYCLONE_TUNED)], "as cyclone, with large datagrams, buffers and write cache"),
    ListEntry("fastdds", "fastdds", "fastdds-host", &[], "Fast DDS 2.9.1 (Debian), default: shared-memory transport"),
    ListEntry("fastdds-sharing", "fastdds", "fastdds-host", &[("HOST_DATA_SHARING", "on")], "as fastdds, with types of fixed size and data sharing"),
    ListEntry("iceoryx2", "iceoryx2", "iceoryx2-host", &[], "iceoryx2 0.10, with its event service where the reader sleeps"),
    ListEntry("zenoh", "zenoh", "zenoh-host", &[], "Zenoh 1.10 peers over TCP, with shared memory for large or loaned messages"),
    ListEntry("zenoh-low", "zenoh", "zenoh-host", &[("HOST_LOWLATENCY", "on")], "as zenoh, with its low-latency transport"),
    ListEntry("zenoh-ros", "zenoh", "zenoh-host", &[("HOST_ROS", "on")], "plain Zenoh 1.10 over TCP, with the keys, tokens and bytes of rmw_zenoh_cpp"),
    ListEntry("hiroz", "hiroz", "hiroz-host", &[(ZENOH_OVERRIDE, ZENOH_ON_LOOPBACK)], "hiroz 0.2.1 over Zenoh 1.10, default settings, without a router"),
    ListEntry(ROS1, ROS1, "roscpp-host", &[], "ROS 1: roscpp (Debian) over TCPROS, with a master; it has no QoS policies"),
    ListEntry(PTEROS, PTEROS, "", &[], "Pteros, with the transport that it chooses"),
    ListEntry("pteros-udp", PTEROS, "", &[("PTEROS_SHARED_MEMORY", "off")], "as pteros, with shared memory switched off"),
    ListEntry("pteros-zenoh", PTEROS, "", &[(RMW_VARIABLE, "rmw_zenoh_cpp")], "Pteros over Zenoh, with the transport that it chooses"),
    ListEntry("pteros-zenoh-tcp", PTEROS, "", &[(RMW_VARIABLE, "rmw_zenoh_cpp"), ("PTEROS_SHARED_MEMORY", "off")], "as pteros-zenoh, with shared memory switched off"),
    ListEntry("rclcpp/pteros", RCLCPP, "rclcpp-host", &[(RMW_VARIABLE, "rmw_pteros_cpp")], "rclcpp over Pteros's plug-in, default"),
    ListEntry("rclcpp/cyclonedds", RCLCPP, "rclcpp-host", &[(RMW_VARIABLE, "rmw_cyclonedds_cpp")], "rclcpp over rmw_cyclonedds_cpp, default"),
    ListEntry("rclcpp/fastrtps", RCLCPP, "rclcpp-host", &[(RMW_VARIABLE, "rmw_fastrtps_cpp")], "rclcpp over rmw_fastrtps_cpp, default"),
    ListEntry("rclpy/pteros", RCLPY, "rclpy-host", &[(RMW_VARIABLE, "rmw_pteros_cpp")], "rclpy over Pteros's plug-in, default"),
    ListEntry("rclpy/cyclonedds", RCLPY, "rclpy-host", &[(RMW_VARIABLE, "rmw_cyclonedds_cpp")], "rclpy over rmw_cyclonedds_cpp, default"),
    ListEntry("rclpy/fastrtps", RCLPY, "rclpy-host", &[(RMW_VARIABLE, "rmw_fastrtps_cpp")], "rclpy over rmw_fastrtps_cpp, default"),
    ListEntry("rosbag2/cyclonedds", ROSBAG2, "rosbag2-recorder", &[(RMW_VARIABLE, "rmw_cyclonedds_cpp")], "ros2 bag record over rmw_cyclonedds_cpp, default"),
    ListEntry("rosbag2/fastrtps", ROSBAG2, "rosbag2-recorder", &[(RMW_VARIABLE, "rmw_fastrtps_cpp")], "ros2 bag record over rmw_fastrtps_cpp, default"),
    ListEntry("pteros-wheel", WHEEL, "wheel-host", &[], "rclpy of Pteros's wheel, default"),
];

/// The implementations of [`RCLCPP`].
pub const OF_RCLCPP: [&str; 3] = ["rclcpp/pteros", "rclcpp/cyclonedds", "rclcpp/fastrtps"];
/// The implementations of [`RCLPY`].
pub const OF_RCLPY: [&str; 3] = ["rclpy/pteros", "rclpy/cyclonedds", "rclpy/fastrtps"];
/// Pteros without shared memory, as a recorder of other stacks receives from it, and the
/// implementations of [`ROSBAG2`].
pub const RECORDERS: [&str; 3] = ["pteros-udp", "rosbag2/cyclonedds", "rosbag2/fastrtps"];
/// The wheel, then the plug-ins of the peers below rclpy.
pub const OF_WHEEL: [&str; 3] = ["pteros-wheel", "rclpy/cyclonedds", "rclpy/fastrtps"];

/// All names, for errors and help texts.
pub fn names() -> Vec<&'static str> {
    LIST.iter().map(|entry| entry.0).collect()
}

/// The stack of an implementation. Empty for an unknown name.
pub fn stack_of(name: &str) -> &'static str {
    let found = LIST.iter().find(|entry| entry.0 == name);
    found.map_or("", |entry| entry.1)
}

/// Names of the other stacks, in the order of reports.
pub fn peer_stacks() -> Vec<&'static str> {
    let mut stacks: Vec<&str> = LIST.iter().map(|entry| entry.1).collect();
    stacks.dedup();
    stacks.retain(|stack| ![FLOOR, PTEROS].contains(stack));
    stacks
}

/// Whether a stack is a client library of ROS 2, or one like it. It sits on a middleware, so the
/// experiments of the papers measure it where it is named only.
pub fn is_client_library(stack: &str) -> bool {
    [RCLCPP, RCLPY, WHEEL].contains(&stack)
}

/// All implementations. `ours` is the program of Pteros. The programs of the others
/// are in `peers`.
pub fn all(peers: &Path, ours: &Path) -> Vec<Implementation> {
    let entry = |&ListEntry(name, stack, program, environment, about): &ListEntry| {
        let is_ours = stack == PTEROS;
        Implementation {
            name,
            stack,
            program: if is_ours {
                ours.to_owned()
            } else {
                peers.join(program)
            },
            environment: environment
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            about,
        }
    };
    LIST.iter().map(entry).collect()
}

impl Implementation {
    /// Whether its program has been built.
    pub fn is_built(&self) -> bool {
        self.program.exists()
    }

    /// The middleware plug-in of a client library of ROS 2, or the wire of Pteros.
    pub fn rmw(&self) -> Option<&str> {
        let mut all = self.environment.iter();
        let found = all.find(|(name, _)| *name == RMW_VARIABLE);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it is Pteros, in any settings.
    pub fn is_ours(&self) -> bool {
        self.stack == PTEROS
    }

    /// Starts one process, pinned to `cpu` if given. `line` is split at spaces.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&self, line: &str, cpu: Option<u32>) -> Result<PeerProcess> {
        let cpu = cpu.map(|cpu| cpu.to_string());
        let before: Vec<&str> = match &cpu {
            Some(cpu) => vec!["taskset", "-c", cpu],
            None => Vec::new(),
        };
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        self.start_with_prefix(&before, &words)
    }

    /// Starts a process behind prefix commands (`chrt -f 80`,
    /// `ip netns exec left`). The program cannot exceed the kernel's buffer limits,
    /// and it dies with the starting thread.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start_with_prefix(&self, before: &[&str], line: &[String]) -> Result<PeerProcess> {
        let guarded = ["setpriv", "--bounding-set", "-net_admin", "--pdeathsig"];
        let mut words = before.to_vec();
        words.extend(guarded);
        words.extend(["KILL", "--"]);
        let [program, rest @ ..] = words.as_slice() else {
            bail!("nothing to start");
        };
        let mut command = Command::new(program);
        command.args(rest);
        for variable in CLEARED_VARIABLES {
            command.env_remove(variable);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg(&self.program);
        command.args(line);
        PeerProcess::start(self.name, &mut command)
    }
}

/// Selects implementations by name, or all of them without a name.
///
/// # Errors
/// An unknown name.
pub fn select(all: Vec<Implementation>, selected: &[String]) -> Result<Vec<Implementation>> {
    for name in selected {
        if !names().contains(&name.as_str()) {
            bail!("--implementations {name}: expected {}", names().join(", "));
        }
    }
    let is_wanted =
        |c: &Implementation| selected.is_empty() || selected.iter().any(|w| w == c.name);
    Ok(all.into_iter().filter(is_wanted).collect())
}
