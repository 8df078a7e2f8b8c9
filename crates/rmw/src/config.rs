//! What the environment says: ROS 2's variables and our few own ones, read
//! once when a context is made.
//!
//! [`Config::from_variables`] is a pure function of a look-up, so tests need
//! no process environment. Sources: rcl `domain_id.c`, `discovery_options.c`,
//! `init.c`, `security.c`. Unlike rcl, a value that means nothing is an error
//! and not a silent fallback; both name the variable, the value and the way
//! out.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pteros_security::settings::Settings;

use crate::spin::SPIN_MAX;
use crate::trace::{BYTES_MAX, BYTES_MIN};

/// The variables that [`Config::from_variables`] looks at.
pub const VARIABLES: &[&str] = &[
    "ROS_DOMAIN_ID",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_STATIC_PEERS",
    "ROS_LOCALHOST_ONLY",
    "RMW_IMPLEMENTATION",
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_STRATEGY",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
    "PTEROS_INTERFACES",
    "PTEROS_FRAGMENT_BYTES",
    "PTEROS_LOCAL_FRAGMENT_BYTES",
    "PTEROS_RECEIVE_BUFFER_BYTES",
    "PTEROS_SEND_BUFFER_BYTES",
    "PTEROS_STORE_DIR",
    "PTEROS_STORE_BYTES",
    "PTEROS_SPIN_US",
    "PTEROS_SHARED_MEMORY",
    "PTEROS_TRACE",
    "PTEROS_TRACE_BYTES",
    "RCUTILS_CONSOLE_OUTPUT_FORMAT",
    "RCUTILS_COLORIZED_OUTPUT",
    "RCUTILS_LOGGING_USE_STDOUT",
    "RCUTILS_LOGGING_BUFFERED_STREAM",
    "ROS_LOG_DIR",
    "ROS_HOME",
    "XDG_STATE_HOME",
    "HOME",
];

/// The highest domain whose ports fit below 65536 (RTPS 2.5 §9.6.1.1 with the
/// default gains of 250 a domain and 2 a participant).
pub const DOMAIN_ID_MAX: u32 = 232;
/// The shortest lease of a participant: announcements go out four times per
/// lease, and a busy host may be that late.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest host name among the static peers, as in rmw.
pub const STATIC_PEER_BYTES_MAX: usize = 255;
/// The most static peers that are used.
pub const STATIC_PEERS_MAX: usize = 256;

/// How far participants look for each other by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum DiscoveryRange {
    /// The local network, by multicast.
    #[default]
    Subnet,
    /// This host only, without multicast.
    Localhost,
    /// Nobody; not even static peers.
    Off,
    /// The middleware's own configuration: for us as `Subnet`, static peers
    /// ignored.
    SystemDefault,
}

impl DiscoveryRange {
    /// Whether static peers are used in this range.
    pub fn uses_static_peers(self) -> bool {
        matches!(self, Self::Subnet | Self::Localhost)
    }
}

impl fmt::Display for DiscoveryRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Subnet => "SUBNET",
            Self::Localhost => "LOCALHOST",
            Self::Off => "OFF",
            Self::SystemDefault => "SYSTEM_DEFAULT",
        })
    }
}

/// One network interface that the user wants used.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum InterfaceChoice {
    /// By its name, as `eth0`.
    Name(String),
    /// By an address it has.
    Address(Ipv4Addr),
}

impl fmt::Display for InterfaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.pad(name),
            Self::Address(address) => fmt::Display::fmt(address, f),
        }
    }
}

/// What the environment asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// `ROS_DOMAIN_ID`, 0 when not given.
    pub domain_id: u32,
    /// `ROS_AUTOMATIC_DISCOVERY_RANGE`, or `ROS_LOCALHOST_ONLY`, which wins.
    pub discovery_range: DiscoveryRange,
    /// `ROS_STATIC_PEERS`: host names or addresses, not yet resolved. Empty
    /// when the range does not use them.
    pub static_peers: Vec<String>,
    /// `PTEROS_INTERFACES`; empty means every usable one.
    pub interfaces: Vec<InterfaceChoice>,
    /// `PTEROS_FRAGMENT_BYTES`: the largest fragment sent to other hosts.
    pub fragment_bytes: Option<u16>,
    /// `PTEROS_LOCAL_FRAGMENT_BYTES`: the largest fragment sent on this host.
    pub local_fragment_bytes: Option<u16>,
    /// `PTEROS_RECEIVE_BUFFER_BYTES`: what is asked of the kernel per socket.
    pub receive_buffer_bytes: Option<usize>,
    /// `PTEROS_SEND_BUFFER_BYTES`: what is asked of the kernel per socket.
    pub send_buffer_bytes: Option<usize>,
    /// Where transient and persistent publishers store: `PTEROS_STORE_DIR`, else
    /// `store` in `ROS_HOME`, else `pteros/store` in `XDG_STATE_HOME` or
    /// `~/.local/state`. `None` where none of them is set.
    pub store_folder: Option<PathBuf>,
    /// `PTEROS_STORE_BYTES`: the most bytes of samples in one store.
    pub store_bytes: Option<u64>,
    /// `PTEROS_SPIN_US`: how long threads poll before they sleep.
    pub spin: Option<Duration>,
    /// `PTEROS_SHARED_MEMORY`, `on` or `off`: whether processes of this host meet
    /// and are linked through it.
    pub shared_memory: Option<bool>,
    /// `PTEROS_TRACE`: the folder that gets the traces of this process's contexts.
    pub trace_folder: Option<PathBuf>,
    /// `PTEROS_TRACE_BYTES`: how large the trace of one context is.
    pub trace_bytes: Option<usize>,
    /// `RCUTILS_CONSOLE_OUTPUT_FORMAT`: how lines of loggers look.
    pub console_format: Option<String>,
    /// `RCUTILS_COLORIZED_OUTPUT`, 0 or 1: whether they have colours, terminal or not.
    pub console_colours: Option<bool>,
    /// `RCUTILS_LOGGING_USE_STDOUT`, 1: they go to standard output, not error.
    pub console_to_stdout: bool,
    /// Where log files lie: `ROS_LOG_DIR`, else `log` in `ROS_HOME`, else `.ros/log` in
    /// `HOME`, whose place a `~` at the beginning takes. `None` where none is set.
    pub log_folder: Option<PathBuf>,
    /// `ROS_SECURITY_ENABLE`, `_STRATEGY` and `_KEYSTORE`; `None` if security is
    /// off.
    pub security: Option<Settings>,
    /// `ROS_SECURITY_ENCLAVE_OVERRIDE`: the enclave, whatever the arguments
    /// say.
    pub enclave_override: Option<String>,
    /// What the operator should know, in words; to be logged once.
    pub warnings: Vec<ConfigWarning>,
}

/// A variable whose value cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("environment variable {variable}={value:?}: {reason}; {way_out}")]
pub struct ConfigError {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What is wrong.
    pub reason: String,
    /// What to set instead.
    pub way_out: String,
}

/// A variable whose value is used differently than it reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigWarning {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What happens, and what to do about it.
    pub message: String,
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "environment variable {}={:?}: {}",
            self.variable, self.value, self.message
        )
    }
}

impl Config {
    /// Reads the variables through `look_up`. An empty value counts as not
    /// given, as in ROS 2.
    pub fn from_variables(
        look_up: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Config, ConfigError> {
        let given = |variable| {
            look_up(variable)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .map(|value| Given { variable, value })
        };
        let mut config = Config::default();
        if let Some(given) = given("ROS_DOMAIN_ID") {
            config.domain_id = domain_id(&given)?;
        }
        if let Some(given) = given("ROS_AUTOMATIC_DISCOVERY_RANGE") {
            config.discovery_range = discovery_range(&given)?;
        }
        if let Some(given) = given("ROS_STATIC_PEERS") {
            config.set_static_peers(&given)?;
        }
        if let Some(given) = given("ROS_LOCALHOST_ONLY") {
            config.set_localhost_only(&given)?;
        }
        if let Some(given) = given("RMW_IMPLEMENTATION") {
            config.warn_of_other_middleware(&given);
        }
        config.security = security(|variable| given(variable).map(|g| g.value))?;
        config.enclave_override = given("ROS_SECURITY_ENCLAVE_OVERRIDE").map(|g| g.value);
        if let Some(given) = given("PTEROS_INTERFACES") {
            config.interfaces = interfaces(&given)?;
        }
        config.fragment_bytes = given("PTEROS_FRAGMENT_BYTES")
            .map(|given| fragment_bytes(&given))
            .transpose()?;
        config.local_fragment_bytes = given("PTEROS_LOCAL_FRAGMENT_BYTES")
            .map(|given| fragment_bytes(&given))
            .transpose()?;
        config.receive_buffer_bytes = given("PTEROS_RECEIVE_BUFFER_BYTES")
            .map(|given| buffer_bytes(&given))
            .transpose()?;
        config.send_buffer_bytes = given("PTEROS_SEND_BUFFER_BYTES")
            .map(|given| buffer_bytes(&given))
            .transpose()?;
        config.store_folder = store_folder(|variable| given(variable).map(|g| g.value));
        config.store_bytes = given("PTEROS_STORE_BYTES")
            .map(|given| bytes_within(&given, STORE_BYTES).map(|bytes| bytes as u64))
            .transpose()?;
        config.spin = given("PTEROS_SPIN_US")
            .map(|given| spin(&given))
            .transpose()?;
        config.shared_memory = given("PTEROS_SHARED_MEMORY")
            .map(|given| on_or_off(&given))
            .transpose()?;
        config.trace_folder = given("PTEROS_TRACE").map(|g| g.value.into());
        config.trace_bytes = given("PTEROS_TRACE_BYTES")
            .map(|given| bytes_within(&given, BYTES_MIN..=BYTES_MAX))
            .transpose()?;
        config.console_format = given("RCUTILS_CONSOLE_OUTPUT_FORMAT").map(|g| g.value);
        config.console_colours = given("RCUTILS_COLORIZED_OUTPUT")
            .map(|given| one_or_zero(&given))
            .transpose()?;
        config.console_to_stdout = given("RCUTILS_LOGGING_USE_STDOUT")
            .map(|given| one_or_zero(&given))
            .transpose()?
            .unwrap_or(false);
        // A line is written whole and at once, which is both that it can ask for.
        given("RCUTILS_LOGGING_BUFFERED_STREAM")
            .map(|given| one_or_zero(&given))
            .transpose()?;
        config.log_folder = log_folder(|variable| given(variable).map(|g| g.value));
        Ok(config)
    }

    /// Reads the process's environment. A value that is no UTF-8 is read with
    /// replacement characters and then refused like any other bad one.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where the environment is read"
    )]
    pub fn from_environment() -> Result<Config, ConfigError> {
        Self::from_variables(|variable| {
            std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn set_static_peers(&mut self, given: &Given) -> Result<(), ConfigError> {
        let peers = static_peers(given)?;
        if self.discovery_range.uses_static_peers() {
            self.static_peers = peers;
        } else if !peers.is_empty() {
            let range = self.discovery_range;
            self.warn(
                given,
                format!(
                    "ignored, since ROS_AUTOMATIC_DISCOVERY_RANGE={range} uses no static peers; \
                     set it to SUBNET or LOCALHOST"
                ),
            );
        }
        Ok(())
    }

    /// Deprecated since Iron, but it wins over the newer variables (rcl
    /// `discovery_options.c`).
    fn set_localhost_only(&mut self, given: &Given) -> Result<(), ConfigError> {
        match given.value.as_str() {
            "0" => Ok(()),
            "1" => {
                self.discovery_range = DiscoveryRange::Localhost;
                self.static_peers.clear();
                self.warn(
                    given,
                    "deprecated, yet it overrides ROS_AUTOMATIC_DISCOVERY_RANGE and \
                     ROS_STATIC_PEERS; set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST instead"
                        .into(),
                );
                Ok(())
            }
            _ => Err(given.error("neither 0 nor 1", "set it to 1, or leave it unset")),
        }
    }

    fn warn_of_other_middleware(&mut self, given: &Given) {
        let message = match given.value.as_str() {
            "rmw_cyclonedds_cpp"
            | "rmw_fastrtps_cpp"
            | "rmw_fastrtps_dynamic_cpp"
            | "rmw_connextdds"
            | "rmw_pteros" => return,
            "rmw_zenoh_cpp" => {
                "the Zenoh wire is not available here; RTPS is used, which nodes on \
                 rmw_zenoh_cpp do not hear: run them with rmw_cyclonedds_cpp or rmw_fastrtps_cpp"
            }
            _ => {
                "not a middleware known here; RTPS is used: unset it, or name one of \
                 rmw_cyclonedds_cpp and rmw_fastrtps_cpp to say so"
            }
        };
        self.warn(given, message.into());
    }

    fn warn(&mut self, given: &Given, message: String) {
        self.warnings.push(ConfigWarning {
            variable: given.variable,
            value: given.value.clone(),
            message,
        });
    }
}

/// Microseconds up to [`SPIN_MAX`].
fn spin(given: &Given) -> Result<Duration, ConfigError> {
    let max = SPIN_MAX.to_std().unwrap_or_default();
    let micros = given.value.parse().ok().map(Duration::from_micros);
    micros.filter(|span| *span <= max).ok_or_else(|| {
        given.error(
            "no number of microseconds up to 100000",
            "set it to a number such as 50, or leave it unset to never poll",
        )
    })
}

/// A variable that is set to something.
struct Given {
    variable: &'static str,
    value: String,
}

impl Given {
    fn error(&self, reason: impl Into<String>, way_out: impl Into<String>) -> ConfigError {
        ConfigError {
            variable: self.variable,
            value: self.value.clone(),
            reason: reason.into(),
            way_out: way_out.into(),
        }
    }
}

/// What is asked of security; a value that means nothing is an error, since it
/// could mean to talk unprotected.
fn security(
    look_up: impl Fn(&'static str) -> Option<String>,
) -> Result<Option<Settings>, ConfigError> {
    let known = |name: &str| VARIABLES.iter().copied().find(|known| *known == name);
    let settings = Settings::read(|name| known(name).and_then(&look_up));
    settings.map_err(|fault| ConfigError {
        variable: known(&fault.field).unwrap_or("ROS_SECURITY_ENABLE"),
        value: fault.value.into(),
        reason: fault.reason.into(),
        way_out: fault.remedy.into(),
    })
}

fn domain_id(given: &Given) -> Result<u32, ConfigError> {
    let way_out = format!("use a whole number from 0 to {DOMAIN_ID_MAX} (0 to 101 is always safe)");
    let id: u64 = match given.value.parse() {
        Ok(id) => id,
        Err(_) if given.value.bytes().all(|b| b.is_ascii_digit()) => u64::MAX,
        Err(_) => return Err(given.error("not a whole number", way_out)),
    };
    match u32::try_from(id).ok().filter(|id| *id <= DOMAIN_ID_MAX) {
        Some(id) => Ok(id),
        None => Err(given.error("its UDP ports would lie above 65535", way_out)),
    }
}

fn discovery_range(given: &Given) -> Result<DiscoveryRange, ConfigError> {
    match given.value.to_ascii_uppercase().as_str() {
        "SUBNET" => Ok(DiscoveryRange::Subnet),
        "LOCALHOST" => Ok(DiscoveryRange::Localhost),
        "OFF" => Ok(DiscoveryRange::Off),
        "SYSTEM_DEFAULT" => Ok(DiscoveryRange::SystemDefault),
        _ => Err(given.error(
            "no such range",
            "use SUBNET, LOCALHOST, OFF or SYSTEM_DEFAULT, or leave it unset",
        )),
    }
}

fn static_peers(given: &Given) -> Result<Vec<String>, ConfigError> {
    let peers: Vec<&str> = given
        .value
        .split(';')
        .map(str::trim)
        .filter(|peer| !peer.is_empty())
        .collect();
    if peers.len() > STATIC_PEERS_MAX {
        return Err(given.error(
            format!("{} peers, more than {STATIC_PEERS_MAX}", peers.len()),
            "list fewer; one reachable peer on each host is enough",
        ));
    }
    let host = |c: char| c.is_ascii_alphanumeric() || "-._:%[]".contains(c);
    for peer in &peers {
        if peer.len() > STATIC_PEER_BYTES_MAX {
            return Err(given.error(
                format!(
                    "the peer {peer:?} has {} characters, more than {STATIC_PEER_BYTES_MAX}",
                    peer.len()
                ),
                "separate peers by semicolons, and use an address if the name is that long",
            ));
        }
        if let Some(c) = peer.chars().find(|c| !host(*c)) {
            return Err(given.error(
                format!("{c:?} in {peer:?} belongs to no host name"),
                "write host names or addresses, separated by semicolons",
            ));
        }
    }
    Ok(peers.into_iter().map(str::to_owned).collect())
}

fn interfaces(given: &Given) -> Result<Vec<InterfaceChoice>, ConfigError> {
    let mut chosen = Vec::new();
    for item in given.value.split([',', ';']).map(str::trim) {
        if item.is_empty() {
            continue;
        }
        if let Ok(address) = item.parse() {
            chosen.push(InterfaceChoice::Address(address));
            continue;
        }
        // Linux: IFNAMSIZ is 16 with the final NUL; `/` and blanks are barred.
        let is_address_like = item.chars().all(|c| c.is_ascii_digit() || c == '.');
        if item.len() > 15 || item.contains(['/', ' ']) || is_address_like {
            return Err(given.error(
                format!("{item:?} is neither an interface name nor an IPv4 address"),
                "list names or addresses as `ip -4 address` shows them, separated by commas",
            ));
        }
        chosen.push(InterfaceChoice::Name(item.to_owned()));
    }
    Ok(chosen)
}

/// A fragment with its headers (RTPS 20, INFO_DST 16, INFO_TS 12, DATA_FRAG
/// 36 and a heartbeat 32) must fit UDP's 65507 bytes.
const FRAGMENT_BYTES: std::ops::RangeInclusive<usize> = 256..=65_000;
const BUFFER_BYTES: std::ops::RangeInclusive<usize> = 4_096..=1 << 30;

/// A store smaller than this holds next to nothing; all of it is in memory.
const STORE_BYTES: std::ops::RangeInclusive<usize> = 4_096..=64 << 30;

/// The first of these that is set. A relative XDG_STATE_HOME is ignored, as
/// the XDG rules say.
fn store_folder(given: impl Fn(&'static str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |folder: &PathBuf| folder.is_absolute();
    given("PTEROS_STORE_DIR")
        .map(PathBuf::from)
        .or_else(|| given("ROS_HOME").map(|home| Path::new(&home).join("store")))
        .or_else(|| {
            let state = given("XDG_STATE_HOME").map(PathBuf::from).filter(absolute);
            let state = state.or_else(|| Some(Path::new(&given("HOME")?).join(".local/state")))?;
            Some(state.join("pteros/store"))
        })
}

/// As rcl_logging_interface `logging_dir.c` has it.
fn log_folder(given: impl Fn(&'static str) -> Option<String>) -> Option<PathBuf> {
    let folder = given("ROS_LOG_DIR")
        .map(PathBuf::from)
        .or_else(|| given("ROS_HOME").map(|home| Path::new(&home).join("log")))
        .unwrap_or_else(|| "~/.ros/log".into());
    match folder.strip_prefix("~") {
        Ok(below) => given("HOME").map(|home| Path::new(&home).join(below)),
        Err(_) => Some(folder),
    }
}

fn fragment_bytes(given: &Given) -> Result<u16, ConfigError> {
    bytes_within(given, FRAGMENT_BYTES).map(|bytes| bytes as u16)
}

fn buffer_bytes(given: &Given) -> Result<usize, ConfigError> {
    bytes_within(given, BUFFER_BYTES)
}

fn one_or_zero(given: &Given) -> Result<bool, ConfigError> {
    match given.value.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(given.error("neither 0 nor 1", "use 0 or 1, or leave it unset")),
    }
}

fn on_or_off(given: &Given) -> Result<bool, ConfigError> {
    match given.value.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(given.error("neither on nor off", "use on or off, or leave it unset")),
    }
}

/// Reads a size: a whole number, or one with `k`, `M` (also `KiB`, `MiB`),
/// all powers of 1024.
fn bytes_within(
    given: &Given,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, ConfigError> {
    let way_out = format!(
        "use a number of bytes from {} to {}, with k or M for 1024 and 1024 * 1024",
        range.start(),
        range.end()
    );
    let value = given.value.as_str();
    let digits = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        _ => return Err(given.error("not a size", way_out)),
    };
    let Ok(number) = number.parse::<usize>() else {
        return Err(given.error("not a size", way_out));
    };
    match number.checked_mul(factor).filter(|n| range.contains(n)) {
        Some(bytes) => Ok(bytes),
        None => Err(given.error("out of range", way_out)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from_variables(|name| {
            assert!(VARIABLES.contains(&name), "{name} is not documented");
            variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_means_domain_0_on_the_subnet() {
        let config = config(&[("ROS_DOMAIN_ID", ""), ("ROS_STATIC_PEERS", " ")]).unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(config.discovery_range, DiscoveryRange::Subnet);
    }

    #[test]
    fn every_variable_is_read() {
        let config = config(&[
            ("ROS_DOMAIN_ID", "42"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "localhost"),
            ("ROS_STATIC_PEERS", "robot1; 10.0.0.7;;arm.local"),
            ("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"),
            ("ROS_SECURITY_ENCLAVE_OVERRIDE", "/arm"),
            ("PTEROS_SHARED_MEMORY", "off"),
            ("PTEROS_INTERFACES", "eth0, 192.168.1.5"),
            ("PTEROS_FRAGMENT_BYTES", "1400"),
            ("PTEROS_LOCAL_FRAGMENT_BYTES", "32k"),
            ("PTEROS_RECEIVE_BUFFER_BYTES", "4 MiB"),
            ("PTEROS_SEND_BUFFER_BYTES", "212992"),
            ("PTEROS_STORE_DIR", "/data/store"),
            ("PTEROS_STORE_BYTES", "1M"),
            ("PTEROS_TRACE", "/data/traces"),
            ("PTEROS_TRACE_BYTES", "2M"),
            ("RCUTILS_CONSOLE_OUTPUT_FORMAT", "{message}"),
            ("RCUTILS_COLORIZED_OUTPUT", "0"),
            ("RCUTILS_LOGGING_USE_STDOUT", "1"),
            ("RCUTILS_LOGGING_BUFFERED_STREAM", "1"),
            ("ROS_LOG_DIR", "/data/log"),
        ])
        .unwrap();
        assert_eq!(config.domain_id, 42);
        assert_eq!(config.discovery_range, DiscoveryRange::Localhost);
        assert_eq!(config.static_peers, ["robot1", "10.0.0.7", "arm.local"]);
        assert_eq!(config.enclave_override.as_deref(), Some("/arm"));
        assert_eq!(
            config.interfaces,
            [
                InterfaceChoice::Name("eth0".into()),
                InterfaceChoice::Address(Ipv4Addr::new(192, 168, 1, 5))
            ]
        );
        assert_eq!(config.shared_memory, Some(false));
        assert_eq!(config.fragment_bytes, Some(1400));
        assert_eq!(config.local_fragment_bytes, Some(32 * 1024));
        assert_eq!(config.receive_buffer_bytes, Some(4 << 20));
        assert_eq!(config.send_buffer_bytes, Some(212_992));
        assert_eq!(config.store_folder, Some("/data/store".into()));
        assert_eq!(config.store_bytes, Some(1 << 20));
        assert_eq!(config.trace_folder, Some("/data/traces".into()));
        assert_eq!(config.trace_bytes, Some(2 << 20));
        assert_eq!(config.console_format.as_deref(), Some("{message}"));
        assert_eq!(config.console_colours, Some(false));
        assert!(config.console_to_stdout);
        assert_eq!(config.log_folder, Some("/data/log".into()));
        assert_eq!(config.warnings, []);
    }

    #[test]
    fn stores_lie_in_the_users_state_folder_unless_told_otherwise() {
        let folder = |variables: &[(&str, &str)]| config(variables).unwrap().store_folder;
        let mut variables = vec![("HOME", "/h")];
        assert_eq!(
            folder(&variables),
            Some("/h/.local/state/pteros/store".into())
        );
        variables.push(("XDG_STATE_HOME", "relative"));
        assert_eq!(
            folder(&variables),
            Some("/h/.local/state/pteros/store".into())
        );
        variables[1] = ("XDG_STATE_HOME", "/state");
        assert_eq!(folder(&variables), Some("/state/pteros/store".into()));
        variables.push(("ROS_HOME", "/ros"));
        assert_eq!(folder(&variables), Some("/ros/store".into()));
        variables.push(("PTEROS_STORE_DIR", "mine"));
        assert_eq!(folder(&variables), Some("mine".into()));
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn log_files_lie_where_ros_2_puts_them() {
        let folder = |variables: &[(&str, &str)]| config(variables).unwrap().log_folder;
        let home = ("HOME", "/h");
        assert_eq!(folder(&[home]), Some("/h/.ros/log".into()));
        assert_eq!(
            folder(&[home, ("ROS_HOME", "/ros")]),
            Some("/ros/log".into())
        );
        let both = [home, ("ROS_HOME", "/ros"), ("ROS_LOG_DIR", "~/mine")];
        assert_eq!(folder(&both), Some("/h/mine".into()));
        assert_eq!(
            folder(&[("ROS_LOG_DIR", "/var/log")]),
            Some("/var/log".into())
        );
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn localhost_only_wins_and_clears_the_peers() {
        let config = config(&[
            ("ROS_LOCALHOST_ONLY", "1"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET"),
            ("ROS_STATIC_PEERS", "robot1"),
        ])
        .unwrap();
        assert_eq!(config.discovery_range, DiscoveryRange::Localhost);
        assert!(config.static_peers.is_empty());
        assert_eq!(config.warnings[0].variable, "ROS_LOCALHOST_ONLY");
    }

    #[test]
    fn static_peers_are_ignored_with_a_warning_where_the_range_forbids_them() {
        let config = config(&[
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF"),
            ("ROS_STATIC_PEERS", "robot1"),
        ])
        .unwrap();
        assert!(config.static_peers.is_empty());
        assert_eq!(
            config.warnings[0].to_string(),
            "environment variable ROS_STATIC_PEERS=\"robot1\": ignored, since \
             ROS_AUTOMATIC_DISCOVERY_RANGE=OFF uses no static peers; set it to SUBNET or LOCALHOST"
        );
    }

    #[test]
    fn a_meaningless_value_names_variable_value_and_way_out() {
        let message = |variable, value| config(&[(variable, value)]).unwrap_err().to_string();
        assert_eq!(
            message("ROS_DOMAIN_ID", "233"),
            "environment variable ROS_DOMAIN_ID=\"233\": its UDP ports would lie above 65535; \
             use a whole number from 0 to 232 (0 to 101 is always safe)"
        );
        assert_eq!(
            message("ROS_AUTOMATIC_DISCOVERY_RANGE", "WORLD"),
            "environment variable ROS_AUTOMATIC_DISCOVERY_RANGE=\"WORLD\": no such range; use \
             SUBNET, LOCALHOST, OFF or SYSTEM_DEFAULT, or leave it unset"
        );
        let long = "h".repeat(256);
        for (variable, value) in [
            ("ROS_DOMAIN_ID", "-1"),
            ("ROS_DOMAIN_ID", "1.5"),
            ("ROS_DOMAIN_ID", "99999999999999999999999"),
            ("ROS_LOCALHOST_ONLY", "yes"),
            ("ROS_STATIC_PEERS", long.as_str()),
            ("ROS_STATIC_PEERS", "robot1,robot2"),
            ("PTEROS_SHARED_MEMORY", "maybe"),
            ("PTEROS_INTERFACES", "10.0.0"),
            ("PTEROS_INTERFACES", "a-name-that-is-too-long"),
            ("PTEROS_FRAGMENT_BYTES", "66000"),
            ("PTEROS_FRAGMENT_BYTES", "tiny"),
            ("PTEROS_RECEIVE_BUFFER_BYTES", "5 GiB"),
            ("PTEROS_STORE_BYTES", "10"),
            ("PTEROS_TRACE_BYTES", "1k"),
        ] {
            let error = config(&[(variable, value)]).unwrap_err();
            assert_eq!((error.variable, error.value.as_str()), (variable, value));
        }
    }

    #[test]
    fn another_middleware_is_warned_of_and_security_means_what_it_says() {
        for name in ["rmw_zenoh_cpp", "rmw_email"] {
            let config = config(&[("RMW_IMPLEMENTATION", name)]).unwrap();
            assert_eq!(config.warnings.len(), 1, "{name}");
        }
        let on = ("ROS_SECURITY_ENABLE", "true");
        let error = config(&[on]).unwrap_err();
        assert_eq!(error.variable, "ROS_SECURITY_KEYSTORE");
        let keystore = ("ROS_SECURITY_KEYSTORE", "/ks");
        let error = config(&[on, keystore, ("ROS_SECURITY_STRATEGY", "Permisive")]).unwrap_err();
        assert_eq!(error.variable, "ROS_SECURITY_STRATEGY");
        let security = config(&[on, keystore]).unwrap().security.unwrap();
        assert!(security.enforce && security.keystore == Path::new("/ks"));
        // rcl takes these for false, and talks unprotected.
        for misspelt in ["True", "1", "yes"] {
            assert!(config(&[("ROS_SECURITY_ENABLE", misspelt)]).is_err());
        }
        let off = config(&[("ROS_SECURITY_ENABLE", "false")]).unwrap();
        assert_eq!((off.warnings, off.security), (vec![], None));
    }
}
