//! Configuration from environment variables: those of ROS 2, as the domain and the
//! discovery range, and a few of Pteros.
//!
//! Read once when a context is created. [`Config::from_variables`] is a pure
//! function of a look-up, so tests need no process environment. Sources: rcl
//! `domain_id.c`, `discovery_options.c`, `init.c`, `security.c`. Unlike rcl, an
//! invalid value is an error and not a silent fallback. The error names the
//! variable, the value and the remedy.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pteros_rtps::participant::DISCOVERY_SERVERS_MAX;

pub use crate::config_error::ConfigError;
pub use crate::ip_versions::IpVersions;
use crate::scheduler::busy_poll::BUSY_POLL_MAX;
use crate::security_settings::SecuritySettings;
use crate::static_peers::{DiscoveryServer, NamedPeers};
use crate::trace::{BYTES_MAX, BYTES_MIN};
pub use crate::zenoh_settings::{WireChoice, ZenohSettings};

/// The variables that [`Config::from_variables`] reads.
pub const VARIABLES: &[&str] = &[
    "ROS_DOMAIN_ID",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_STATIC_PEERS",
    "ROS_LOCALHOST_ONLY",
    "ROS_DISCOVERY_SERVER",
    "ROS_SUPER_CLIENT",
    "RMW_IMPLEMENTATION",
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_STRATEGY",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
    "PTEROS_WIRE",
    "PTEROS_INTERFACES",
    "PTEROS_IP_VERSIONS",
    "PTEROS_FRAGMENT_BYTES",
    "PTEROS_LOCAL_FRAGMENT_BYTES",
    "PTEROS_RECEIVE_BUFFER_BYTES",
    "PTEROS_SEND_BUFFER_BYTES",
    "PTEROS_STORE_DIR",
    "PTEROS_STORE_BYTES",
    "PTEROS_BUSY_POLL_US",
    "PTEROS_SHARED_MEMORY",
    "PTEROS_TRACE",
    "PTEROS_TRACE_BYTES",
    "PTEROS_RMW_OPTIONAL_FEATURES",
    "ZENOH_SESSION_CONFIG_URI",
    "ZENOH_ROUTER_CONFIG_URI",
    "ZENOH_CONFIG_OVERRIDE",
    "ZENOH_ROUTER_CHECK_ATTEMPTS",
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
/// default gains of 250 per domain and 2 per participant).
pub const DOMAIN_ID_MAX: u32 = 232;
/// The shortest participant lease. Announcements go out four times per lease, and a
/// busy host may delay them that much.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest host name among the static peers, as in rmw.
pub const STATIC_PEER_BYTES_MAX: usize = 255;
/// The most static peers that are used.
pub const STATIC_PEERS_MAX: usize = 256;

/// How far discovery reaches (ROS_AUTOMATIC_DISCOVERY_RANGE).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum DiscoveryRange {
    /// The local network, by multicast.
    #[default]
    Subnet,
    /// This host only, without multicast.
    Localhost,
    /// No discovery, not even of static peers.
    Off,
    /// The middleware's own configuration: here as `Subnet`, with static peers
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

/// A network interface chosen by the user.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum InterfaceChoice {
    /// By name, such as `eth0`.
    Name(String),
    /// By one of its addresses.
    Address(IpAddr),
}

impl fmt::Display for InterfaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.pad(name),
            Self::Address(address) => fmt::Display::fmt(address, f),
        }
    }
}

/// The part of the network that RTPS uses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkChoice {
    /// `PTEROS_INTERFACES`; empty means every usable one.
    pub interfaces: Vec<InterfaceChoice>,
    /// `PTEROS_IP_VERSIONS`: `4`, `6` or `4,6`.
    pub ip_versions: IpVersions,
}

/// The configuration from the environment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// `ROS_DOMAIN_ID`, 0 when not given.
    pub domain_id: u32,
    /// `ROS_AUTOMATIC_DISCOVERY_RANGE`, or `ROS_LOCALHOST_ONLY`, which takes precedence.
    pub discovery_range: DiscoveryRange,
    /// Static peers and discovery servers, not yet resolved.
    pub named_peers: NamedPeers,
    /// The part of the network that RTPS uses.
    pub network: NetworkChoice,
    /// `PTEROS_FRAGMENT_BYTES`: the largest fragment sent to other hosts.
    pub fragment_bytes: Option<u16>,
    /// `PTEROS_LOCAL_FRAGMENT_BYTES`: the largest fragment sent on this host.
    pub local_fragment_bytes: Option<u16>,
    /// `PTEROS_RECEIVE_BUFFER_BYTES`: requested receive buffer per socket.
    pub receive_buffer_bytes: Option<usize>,
    /// `PTEROS_SEND_BUFFER_BYTES`: requested send buffer per socket.
    pub send_buffer_bytes: Option<usize>,
    /// Where transient and persistent publishers store: `PTEROS_STORE_DIR`, else
    /// `store` in `ROS_HOME`, else `pteros/store` in `XDG_STATE_HOME` or
    /// `~/.local/state`. `None` where none of them is set.
    pub store_folder: Option<PathBuf>,
    /// `PTEROS_STORE_BYTES`: the most bytes of samples in one store.
    pub store_bytes: Option<u64>,
    /// `PTEROS_BUSY_POLL_US`: how long threads busy-poll before they sleep.
    pub busy_poll: Option<Duration>,
    /// `PTEROS_SHARED_MEMORY`, `on` or `off`: whether processes of this host use it
    /// for discovery and data.
    pub shared_memory: Option<bool>,
    /// `PTEROS_TRACE`: the folder for the traces of this process's contexts.
    pub trace_folder: Option<PathBuf>,
    /// `PTEROS_TRACE_BYTES`: the size of the trace of one context.
    pub trace_bytes: Option<usize>,
    /// `PTEROS_RMW_OPTIONAL_FEATURES`, `on` or `off`: whether rmw_pteros_cpp offers
    /// what a middleware may decline, loaned messages and content filters.
    pub rmw_optional_features: Option<bool>,
    /// `RCUTILS_CONSOLE_OUTPUT_FORMAT`: the format of log lines.
    pub console_format: Option<String>,
    /// `RCUTILS_COLORIZED_OUTPUT`, 0 or 1: whether log lines are coloured, terminal
    /// or not.
    pub console_colours: Option<bool>,
    /// `RCUTILS_LOGGING_USE_STDOUT`, 1: log lines go to standard output instead of
    /// standard error.
    pub console_to_stdout: bool,
    /// The folder of log files: `ROS_LOG_DIR`, else `log` in `ROS_HOME`, else
    /// `.ros/log` in `HOME`. A leading `~` stands for `HOME`. `None` where none is
    /// set.
    pub log_folder: Option<PathBuf>,
    /// `ROS_SECURITY_ENABLE`, `_STRATEGY` and `_KEYSTORE`; `None` if security is
    /// off.
    pub security: Option<SecuritySettings>,
    /// `ROS_SECURITY_ENCLAVE_OVERRIDE`: the enclave, whatever the arguments
    /// say.
    pub enclave_override: Option<String>,
    /// `RMW_IMPLEMENTATION`, where it names a transport of Pteros other than RTPS.
    pub wire: Option<WireChoice>,
    zenoh: ZenohSettings,
    /// Error of a malformed Zenoh variable, which only concerns contexts that use Zenoh.
    zenoh_error: Option<ConfigError>,
    /// Warnings for the operator, to be logged once.
    pub warnings: Vec<ConfigWarning>,
}

/// A variable whose value is interpreted in an unexpected way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigWarning {
    /// Name of the environment variable.
    pub variable: &'static str,
    /// The value as it is set.
    pub value: String,
    /// The effect and the remedy.
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
    /// Settings from the variables of rmw_zenoh_cpp.
    ///
    /// # Errors
    /// One of them is malformed.
    pub fn zenoh(&self) -> Result<ZenohSettings, ConfigError> {
        match &self.zenoh_error {
            Some(error) => Err(error.clone()),
            None => Ok(self.zenoh.clone()),
        }
    }

    /// Reads the variables through `look_up`. An empty value counts as unset, as in
    /// ROS 2.
    pub fn from_variables(
        look_up: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Config, ConfigError> {
        let setting = |variable| {
            look_up(variable)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .map(|value| SetVariable { variable, value })
        };
        let mut config = Config::default();
        if let Some(setting) = setting("ROS_DOMAIN_ID") {
            config.domain_id = domain_id(&setting)?;
        }
        if let Some(setting) = setting("ROS_AUTOMATIC_DISCOVERY_RANGE") {
            config.discovery_range = discovery_range(&setting)?;
        }
        if let Some(setting) = setting("ROS_STATIC_PEERS") {
            config.set_static_peers(&setting)?;
        }
        if let Some(setting) = setting("ROS_LOCALHOST_ONLY") {
            config.set_localhost_only(&setting)?;
        }
        if let Some(setting) = setting("ROS_DISCOVERY_SERVER") {
            config.set_discovery_servers(&setting)?;
        }
        config.named_peers.is_super_client = setting("ROS_SUPER_CLIENT")
            .map(|setting| true_or_false(&setting))
            .transpose()?
            .unwrap_or(false);
        if let Some(setting) = setting("RMW_IMPLEMENTATION") {
            config.set_middleware(&setting);
        }
        if let Some(setting) = setting("PTEROS_WIRE") {
            config.wire = Some(wire_choice(&setting)?);
        }
        match ZenohSettings::read(|variable| setting(variable).map(|g| g.value)) {
            Ok(settings) => config.zenoh = settings,
            Err(error) => config.zenoh_error = Some(error),
        }
        config.security = SecuritySettings::read(|variable| setting(variable).map(|g| g.value))?;
        config.enclave_override = setting("ROS_SECURITY_ENCLAVE_OVERRIDE").map(|g| g.value);
        if let Some(setting) = setting("PTEROS_INTERFACES") {
            config.network.interfaces = interfaces(&setting)?;
        }
        if let Some(setting) = setting("PTEROS_IP_VERSIONS") {
            config.network.ip_versions = ip_versions(&setting)?;
        }
        config.fragment_bytes = setting("PTEROS_FRAGMENT_BYTES")
            .map(|setting| fragment_bytes(&setting))
            .transpose()?;
        config.local_fragment_bytes = setting("PTEROS_LOCAL_FRAGMENT_BYTES")
            .map(|setting| fragment_bytes(&setting))
            .transpose()?;
        config.receive_buffer_bytes = setting("PTEROS_RECEIVE_BUFFER_BYTES")
            .map(|setting| buffer_bytes(&setting))
            .transpose()?;
        config.send_buffer_bytes = setting("PTEROS_SEND_BUFFER_BYTES")
            .map(|setting| buffer_bytes(&setting))
            .transpose()?;
        config.store_folder = store_folder(|variable| setting(variable).map(|g| g.value));
        config.store_bytes = setting("PTEROS_STORE_BYTES")
            .map(|setting| bytes_within(&setting, STORE_BYTES).map(|bytes| bytes as u64))
            .transpose()?;
        config.busy_poll = setting("PTEROS_BUSY_POLL_US")
            .map(|setting| busy_poll_span(&setting))
            .transpose()?;
        config.shared_memory = setting("PTEROS_SHARED_MEMORY")
            .map(|setting| on_or_off(&setting))
            .transpose()?;
        config.trace_folder = setting("PTEROS_TRACE").map(|g| g.value.into());
        config.trace_bytes = setting("PTEROS_TRACE_BYTES")
            .map(|setting| bytes_within(&setting, BYTES_MIN..=BYTES_MAX))
            .transpose()?;
        config.rmw_optional_features = setting("PTEROS_RMW_OPTIONAL_FEATURES")
            .map(|setting| on_or_off(&setting))
            .transpose()?;
        config.console_format = setting("RCUTILS_CONSOLE_OUTPUT_FORMAT").map(|g| g.value);
        config.console_colours = setting("RCUTILS_COLORIZED_OUTPUT")
            .map(|setting| one_or_zero(&setting))
            .transpose()?;
        config.console_to_stdout = setting("RCUTILS_LOGGING_USE_STDOUT")
            .map(|setting| one_or_zero(&setting))
            .transpose()?
            .unwrap_or(false);
        // Lines are always written whole and immediately, which satisfies both values of
        // this variable.
        setting("RCUTILS_LOGGING_BUFFERED_STREAM")
            .map(|setting| one_or_zero(&setting))
            .transpose()?;
        config.log_folder = log_folder(&look_up);
        Ok(config)
    }

    /// Reads the process environment.
    ///
    /// A value that is not UTF-8 is read with replacement characters and then
    /// refused like any other invalid one.
    pub fn from_environment() -> Result<Config, ConfigError> {
        Self::from_variables(environment)
    }

    /// The folder of log files in the process environment, whatever its other variables
    /// are; see [`log_folder`].
    pub fn log_folder_of_environment() -> Option<PathBuf> {
        log_folder(environment)
    }

    fn set_static_peers(&mut self, setting: &SetVariable) -> Result<(), ConfigError> {
        let peers = static_peers(setting)?;
        if self.discovery_range.uses_static_peers() {
            self.named_peers.static_peers = peers;
        } else if !peers.is_empty() {
            let range = self.discovery_range;
            self.warn(
                setting,
                format!(
                    "ignored, since ROS_AUTOMATIC_DISCOVERY_RANGE={range} uses no static peers; \
                     set it to SUBNET or LOCALHOST"
                ),
            );
        }
        Ok(())
    }

    fn set_discovery_servers(&mut self, setting: &SetVariable) -> Result<(), ConfigError> {
        let servers = host_list(setting, "server", DISCOVERY_SERVERS_MAX)?;
        for server in &servers {
            DiscoveryServer::check(server).map_err(|reason| {
                setting.error(
                    format!("{server:?}: {reason}"),
                    "write address:port;address:port",
                )
            })?;
        }
        if self.discovery_range != DiscoveryRange::Off {
            self.named_peers.discovery_servers = servers;
        } else if !servers.is_empty() {
            self.warn(
                setting,
                "ignored, since ROS_AUTOMATIC_DISCOVERY_RANGE=OFF discovers nothing; set it to \
                 SUBNET or LOCALHOST"
                    .into(),
            );
        }
        Ok(())
    }

    /// Deprecated since Iron, but it takes precedence over the newer variables (rcl
    /// `discovery_options.c`).
    fn set_localhost_only(&mut self, setting: &SetVariable) -> Result<(), ConfigError> {
        match setting.value.as_str() {
            "0" => Ok(()),
            "1" => {
                self.discovery_range = DiscoveryRange::Localhost;
                self.named_peers.static_peers.clear();
                self.warn(
                    setting,
                    "deprecated, but it overrides ROS_AUTOMATIC_DISCOVERY_RANGE and \
                     ROS_STATIC_PEERS; set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST instead"
                        .into(),
                );
                Ok(())
            }
            _ => Err(setting.error("neither 0 nor 1", "set it to 1, or leave it unset")),
        }
    }

    fn set_middleware(&mut self, setting: &SetVariable) {
        let message = match setting.value.as_str() {
            "rmw_cyclonedds_cpp"
            | "rmw_fastrtps_cpp"
            | "rmw_fastrtps_dynamic_cpp"
            | "rmw_connextdds"
            | "rmw_pteros_cpp" => return,
            "rmw_zenoh_cpp" => {
                self.wire = Some(WireChoice::Zenoh);
                return;
            }
            _ => {
                "unknown middleware; RTPS is used: unset it, or set rmw_cyclonedds_cpp, \
                 rmw_fastrtps_cpp or rmw_zenoh_cpp"
            }
        };
        self.warn(setting, message.into());
    }

    fn warn(&mut self, setting: &SetVariable, message: String) {
        self.warnings.push(ConfigWarning {
            variable: setting.variable,
            value: setting.value.clone(),
            message,
        });
    }
}

/// Microseconds up to [`BUSY_POLL_MAX`].
fn busy_poll_span(setting: &SetVariable) -> Result<Duration, ConfigError> {
    let max = BUSY_POLL_MAX.to_std().unwrap_or_default();
    let micros = setting.value.parse().ok().map(Duration::from_micros);
    micros.filter(|span| *span <= max).ok_or_else(|| {
        setting.error(
            "not a number of microseconds up to 100000",
            "set it to a number such as 50, or leave it unset to disable busy polling",
        )
    })
}

/// A variable that has a value.
struct SetVariable {
    variable: &'static str,
    value: String,
}

impl SetVariable {
    fn error(&self, reason: impl Into<String>, hint: impl Into<String>) -> ConfigError {
        ConfigError {
            variable: self.variable,
            value: self.value.clone(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

fn domain_id(setting: &SetVariable) -> Result<u32, ConfigError> {
    let hint = format!("use a whole number from 0 to {DOMAIN_ID_MAX} (0 to 101 is always safe)");
    let id: u64 = match setting.value.parse() {
        Ok(id) => id,
        Err(_) if setting.value.bytes().all(|b| b.is_ascii_digit()) => u64::MAX,
        Err(_) => return Err(setting.error("not a whole number", hint)),
    };
    match u32::try_from(id).ok().filter(|id| *id <= DOMAIN_ID_MAX) {
        Some(id) => Ok(id),
        None => Err(setting.error("its UDP ports would lie above 65535", hint)),
    }
}

fn discovery_range(setting: &SetVariable) -> Result<DiscoveryRange, ConfigError> {
    match setting.value.to_ascii_uppercase().as_str() {
        "SUBNET" => Ok(DiscoveryRange::Subnet),
        "LOCALHOST" => Ok(DiscoveryRange::Localhost),
        "OFF" => Ok(DiscoveryRange::Off),
        "SYSTEM_DEFAULT" => Ok(DiscoveryRange::SystemDefault),
        _ => Err(setting.error(
            "unknown range",
            "use SUBNET, LOCALHOST, OFF or SYSTEM_DEFAULT, or leave it unset",
        )),
    }
}

fn static_peers(setting: &SetVariable) -> Result<Vec<String>, ConfigError> {
    host_list(setting, "peer", STATIC_PEERS_MAX)
}

/// Hosts with or without ports, separated by semicolons. `kind` is what one is called.
fn host_list(setting: &SetVariable, kind: &str, max: usize) -> Result<Vec<String>, ConfigError> {
    let peers: Vec<&str> = setting
        .value
        .split(';')
        .map(str::trim)
        .filter(|peer| !peer.is_empty())
        .collect();
    if peers.len() > max {
        return Err(setting.error(
            format!("{} {kind}s, more than {max}", peers.len()),
            "list fewer; one reachable peer per host is enough",
        ));
    }
    let host = |c: char| c.is_ascii_alphanumeric() || "-._:%[]".contains(c);
    for peer in &peers {
        if peer.len() > STATIC_PEER_BYTES_MAX {
            return Err(setting.error(
                format!(
                    "the {kind} {peer:?} has {} characters, more than {STATIC_PEER_BYTES_MAX}",
                    peer.len()
                ),
                format!(
                    "separate {kind}s by semicolons, and use an address if the name is that long"
                ),
            ));
        }
        if let Some(c) = peer.chars().find(|c| !host(*c)) {
            return Err(setting.error(
                format!("{c:?} in {peer:?} is not allowed in a host name"),
                "write host names or addresses, separated by semicolons",
            ));
        }
    }
    Ok(peers.into_iter().map(str::to_owned).collect())
}

fn interfaces(setting: &SetVariable) -> Result<Vec<InterfaceChoice>, ConfigError> {
    let mut chosen = Vec::new();
    for item in setting.value.split([',', ';']).map(str::trim) {
        if item.is_empty() {
            continue;
        }
        if let Ok(address) = item.parse() {
            chosen.push(InterfaceChoice::Address(address));
            continue;
        }
        // Linux: IFNAMSIZ is 16 with the final NUL; `/` and blanks are not allowed.
        let is_address_like = item.chars().all(|c| c.is_ascii_digit() || c == '.');
        if item.len() > 15 || item.contains(['/', ' ']) || is_address_like {
            return Err(setting.error(
                format!("{item:?} is neither an interface name nor an IP address"),
                "list names or addresses as `ip address` shows them, separated by commas",
            ));
        }
        chosen.push(InterfaceChoice::Name(item.to_owned()));
    }
    Ok(chosen)
}

fn ip_versions(setting: &SetVariable) -> Result<IpVersions, ConfigError> {
    let versions = setting.value.split(',').map(str::trim);
    let versions: Vec<&str> = versions.filter(|version| !version.is_empty()).collect();
    match versions.as_slice() {
        ["4"] => Ok(IpVersions::V4),
        ["6"] => Ok(IpVersions::V6),
        ["4", "6"] | ["6", "4"] => Ok(IpVersions::Both),
        _ => Err(setting.error(
            "no list of versions of IP",
            "use 4, 6 or 4,6, or leave it unset for IPv4, and IPv6 where there is no IPv4",
        )),
    }
}

/// A fragment with its headers (RTPS 20, INFO_DST 16, INFO_TS 12, DATA_FRAG
/// 36 and a heartbeat 32) must fit UDP's 65507 bytes.
const FRAGMENT_BYTES: std::ops::RangeInclusive<usize> = 256..=65_000;
const BUFFER_BYTES: std::ops::RangeInclusive<usize> = 4_096..=1 << 30;

/// Smaller stores hold next to nothing. A store is kept in memory as a whole.
const STORE_BYTES: std::ops::RangeInclusive<usize> = 4_096..=64 << 30;

/// The first variable that is set. A relative XDG_STATE_HOME is ignored, as the XDG
/// specification requires.
fn store_folder(setting: impl Fn(&'static str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |folder: &PathBuf| folder.is_absolute();
    setting("PTEROS_STORE_DIR")
        .map(PathBuf::from)
        .or_else(|| setting("ROS_HOME").map(|home| Path::new(&home).join("store")))
        .or_else(|| {
            let state = setting("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(absolute);
            let state =
                state.or_else(|| Some(Path::new(&setting("HOME")?).join(".local/state")))?;
            Some(state.join("pteros/store"))
        })
}

/// A variable of the process environment.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read"
)]
fn environment(variable: &'static str) -> Option<String> {
    std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// The folder of log files in an environment; see [`Config::log_folder`]. The same rules as
/// `logging_dir.c` of rcl_logging_interface.
pub fn log_folder(look_up: impl Fn(&'static str) -> Option<String>) -> Option<PathBuf> {
    let setting = |variable| {
        let value = look_up(variable)?;
        (!value.trim().is_empty()).then(|| value.trim().to_owned())
    };
    let folder = setting("ROS_LOG_DIR")
        .map(PathBuf::from)
        .or_else(|| setting("ROS_HOME").map(|home| Path::new(&home).join("log")))
        .unwrap_or_else(|| "~/.ros/log".into());
    match folder.strip_prefix("~") {
        Ok(below) => setting("HOME").map(|home| Path::new(&home).join(below)),
        Err(_) => Some(folder),
    }
}

fn fragment_bytes(setting: &SetVariable) -> Result<u16, ConfigError> {
    bytes_within(setting, FRAGMENT_BYTES).map(|bytes| bytes as u16)
}

fn buffer_bytes(setting: &SetVariable) -> Result<usize, ConfigError> {
    bytes_within(setting, BUFFER_BYTES)
}

fn one_or_zero(setting: &SetVariable) -> Result<bool, ConfigError> {
    match setting.value.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(setting.error("neither 0 nor 1", "use 0 or 1, or leave it unset")),
    }
}

/// The words of Fast DDS.
fn true_or_false(setting: &SetVariable) -> Result<bool, ConfigError> {
    match setting.value.to_ascii_uppercase().as_str() {
        "TRUE" | "1" => Ok(true),
        "FALSE" | "0" => Ok(false),
        _ => Err(setting.error("neither TRUE nor FALSE", "use TRUE, or leave it unset")),
    }
}

fn wire_choice(setting: &SetVariable) -> Result<WireChoice, ConfigError> {
    let choice = WireChoice::from_name(&setting.value);
    choice.ok_or_else(|| setting.error(WireChoice::REASON, WireChoice::HINT))
}

fn on_or_off(setting: &SetVariable) -> Result<bool, ConfigError> {
    match setting.value.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(setting.error("neither on nor off", "use on or off, or leave it unset")),
    }
}

/// Reads a size: a whole number, or one with `k`, `M` (also `KiB`, `MiB`),
/// all powers of 1024.
fn bytes_within(
    setting: &SetVariable,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, ConfigError> {
    let hint = format!(
        "use a number of bytes from {} to {}, with k or M for 1024 and 1024 * 1024",
        range.start(),
        range.end()
    );
    let value = setting.value.as_str();
    let digits = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        _ => return Err(setting.error("not a size", hint)),
    };
    let Ok(number) = number.parse::<usize>() else {
        return Err(setting.error("not a size", hint));
    };
    match number.checked_mul(factor).filter(|n| range.contains(n)) {
        Some(bytes) => Ok(bytes),
        None => Err(setting.error("out of range", hint)),
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
            ("PTEROS_IP_VERSIONS", "4, 6"),
            ("PTEROS_FRAGMENT_BYTES", "1400"),
            ("PTEROS_LOCAL_FRAGMENT_BYTES", "32k"),
            ("PTEROS_RECEIVE_BUFFER_BYTES", "4 MiB"),
            ("PTEROS_SEND_BUFFER_BYTES", "212992"),
            ("PTEROS_STORE_DIR", "/data/store"),
            ("PTEROS_STORE_BYTES", "1M"),
            ("PTEROS_TRACE", "/data/traces"),
            ("PTEROS_TRACE_BYTES", "2M"),
            ("PTEROS_RMW_OPTIONAL_FEATURES", "off"),
            ("RCUTILS_CONSOLE_OUTPUT_FORMAT", "{message}"),
            ("RCUTILS_COLORIZED_OUTPUT", "0"),
            ("RCUTILS_LOGGING_USE_STDOUT", "1"),
            ("RCUTILS_LOGGING_BUFFERED_STREAM", "1"),
            ("ROS_LOG_DIR", "/data/log"),
        ])
        .unwrap();
        assert_eq!(config.domain_id, 42);
        assert_eq!(config.discovery_range, DiscoveryRange::Localhost);
        assert_eq!(
            config.named_peers.static_peers,
            ["robot1", "10.0.0.7", "arm.local"]
        );
        assert_eq!(config.enclave_override.as_deref(), Some("/arm"));
        assert_eq!(
            config.network.interfaces,
            [
                InterfaceChoice::Name("eth0".into()),
                InterfaceChoice::Address("192.168.1.5".parse().unwrap())
            ]
        );
        assert_eq!(config.network.ip_versions, IpVersions::Both);
        assert_eq!(config.shared_memory, Some(false));
        assert_eq!(config.fragment_bytes, Some(1400));
        assert_eq!(config.local_fragment_bytes, Some(32 * 1024));
        assert_eq!(config.receive_buffer_bytes, Some(4 << 20));
        assert_eq!(config.send_buffer_bytes, Some(212_992));
        assert_eq!(config.store_folder, Some("/data/store".into()));
        assert_eq!(config.store_bytes, Some(1 << 20));
        assert_eq!(config.trace_folder, Some("/data/traces".into()));
        assert_eq!(config.trace_bytes, Some(2 << 20));
        assert_eq!(config.rmw_optional_features, Some(false));
        assert_eq!(config.console_format.as_deref(), Some("{message}"));
        assert_eq!(config.console_colours, Some(false));
        assert!(config.console_to_stdout);
        assert_eq!(config.log_folder, Some("/data/log".into()));
        assert_eq!(config.warnings, []);
    }

    #[test]
    fn stores_lie_in_the_users_state_folder_by_default() {
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
    fn log_files_lie_where_ros_2_places_them() {
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
        assert!(config.named_peers.static_peers.is_empty());
        assert_eq!(config.warnings[0].variable, "ROS_LOCALHOST_ONLY");
    }

    #[test]
    fn static_peers_are_ignored_with_a_warning_where_the_range_forbids_them() {
        let config = config(&[
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF"),
            ("ROS_STATIC_PEERS", "robot1"),
        ])
        .unwrap();
        assert!(config.named_peers.static_peers.is_empty());
        assert_eq!(
            config.warnings[0].to_string(),
            "environment variable ROS_STATIC_PEERS=\"robot1\": ignored, since \
             ROS_AUTOMATIC_DISCOVERY_RANGE=OFF uses no static peers; set it to SUBNET or LOCALHOST"
        );
    }

    #[test]
    fn an_invalid_value_is_an_error_with_variable_value_and_hint() {
        let message = |variable, value| config(&[(variable, value)]).unwrap_err().to_string();
        assert_eq!(
            message("ROS_DOMAIN_ID", "233"),
            "environment variable ROS_DOMAIN_ID=\"233\": its UDP ports would lie above 65535; \
             use a whole number from 0 to 232 (0 to 101 is always safe)"
        );
        assert_eq!(
            message("ROS_AUTOMATIC_DISCOVERY_RANGE", "WORLD"),
            "environment variable ROS_AUTOMATIC_DISCOVERY_RANGE=\"WORLD\": unknown range; use \
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
            ("PTEROS_WIRE", "rtps+zenoh"),
            ("PTEROS_SHARED_MEMORY", "maybe"),
            ("PTEROS_RMW_OPTIONAL_FEATURES", "some"),
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
    fn a_domain_that_is_no_number_is_told_from_one_that_is_too_high() {
        let message = |value| config(&[("ROS_DOMAIN_ID", value)]).unwrap_err().to_string();
        for value in ["one", "12a", "-1", "1.5"] {
            assert!(message(value).contains("not a whole number"), "{value}");
        }
        for value in ["233", "4294967296", "99999999999999999999999"] {
            assert!(message(value).contains("above 65535"), "{value}");
        }
        assert_eq!(config(&[("ROS_DOMAIN_ID", "232")]).unwrap().domain_id, 232);
    }

    #[test]
    fn discovery_servers_are_checked_and_unused_without_discovery() {
        let servers = |list: &str| config(&[("ROS_DISCOVERY_SERVER", list)]);
        let read = servers(";10.0.0.7:11811; robot ;;[fd00::7]").unwrap();
        assert_eq!(
            read.named_peers.discovery_servers,
            ["10.0.0.7:11811", "robot", "[fd00::7]"]
        );
        assert!(!read.named_peers.is_super_client);
        assert!(servers(&["a"; 32].join(";")).is_ok());
        for (list, part) in [
            ("TCPv4:[10.0.0.7]:42100", "RTPS uses UDP"),
            ("10.0.0.7:x", "no port"),
            ("a,b", "not allowed in a host name"),
            (&*["a"; 33].join(";"), "33 servers, more than 32"),
        ] {
            let error = servers(list).unwrap_err().to_string();
            assert!(error.contains("ROS_DISCOVERY_SERVER"), "{error}");
            assert!(error.contains(part), "{error}");
        }
        for (word, is_super) in [
            ("TRUE", true),
            ("true", true),
            ("1", true),
            ("False", false),
        ] {
            let read = config(&[("ROS_SUPER_CLIENT", word)]).unwrap();
            assert_eq!(read.named_peers.is_super_client, is_super, "{word}");
        }
        assert!(config(&[("ROS_SUPER_CLIENT", "maybe")]).is_err());
        let off = config(&[
            ("ROS_DISCOVERY_SERVER", "10.0.0.7"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF"),
        ])
        .unwrap();
        assert!(off.named_peers.discovery_servers.is_empty());
        assert_eq!(off.warnings.len(), 1);
    }

    #[test]
    fn as_many_static_peers_as_the_limit_are_taken() {
        let peers = |count: usize, bytes: usize| -> String {
            (0..count).map(|n| format!("{n:0>bytes$};")).collect()
        };
        let taken = |list: &str| {
            config(&[("ROS_STATIC_PEERS", list)]).map(|c| c.named_peers.static_peers.len())
        };
        assert_eq!(
            taken(&peers(STATIC_PEERS_MAX, 3)).unwrap(),
            STATIC_PEERS_MAX
        );
        assert!(taken(&peers(STATIC_PEERS_MAX + 1, 3)).is_err());
        assert_eq!(taken(&peers(1, STATIC_PEER_BYTES_MAX)).unwrap(), 1);
        assert!(taken(&peers(1, STATIC_PEER_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_malformed_variable_of_zenoh_stops_those_alone_that_use_it() {
        let config = config(&[("ZENOH_ROUTER_CHECK_ATTEMPTS", "often")]).unwrap();
        let error = config.zenoh().unwrap_err();
        assert_eq!(error.variable, "ZENOH_ROUTER_CHECK_ATTEMPTS");
    }

    #[test]
    fn another_middleware_is_a_warning_and_invalid_security_values_are_errors() {
        let of = |name| config(&[("RMW_IMPLEMENTATION", name)]).unwrap();
        assert_eq!(of("rmw_email").warnings.len(), 1);
        let zenoh = of("rmw_zenoh_cpp");
        assert_eq!(
            (zenoh.warnings, zenoh.wire),
            (vec![], Some(WireChoice::Zenoh))
        );
        // The plug-in's own name does not select a transport.
        let plug_in = ("RMW_IMPLEMENTATION", "rmw_pteros_cpp");
        let both = config(&[plug_in, ("PTEROS_WIRE", "rtps,zenoh")]).unwrap();
        assert_eq!(both.wire, Some(WireChoice::Both));
        let zenoh = ("RMW_IMPLEMENTATION", "rmw_zenoh_cpp");
        let rtps = config(&[zenoh, ("PTEROS_WIRE", "rtps")]).unwrap();
        assert_eq!(rtps.wire, Some(WireChoice::Rtps));
        let on = ("ROS_SECURITY_ENABLE", "true");
        let error = config(&[on]).unwrap_err();
        assert_eq!(error.variable, "ROS_SECURITY_KEYSTORE");
        let keystore = ("ROS_SECURITY_KEYSTORE", "/ks");
        let error = config(&[on, keystore, ("ROS_SECURITY_STRATEGY", "Permisive")]).unwrap_err();
        assert_eq!(error.variable, "ROS_SECURITY_STRATEGY");
        let security = config(&[on, keystore]).unwrap().security.unwrap();
        assert!(security.enforce && security.keystore == Path::new("/ks"));
        // rcl reads these as false and communicates unprotected.
        for misspelt in ["True", "1", "yes"] {
            assert!(config(&[("ROS_SECURITY_ENABLE", misspelt)]).is_err());
        }
        let off = config(&[("ROS_SECURITY_ENABLE", "false")]).unwrap();
        assert_eq!((off.warnings, off.security), (vec![], None));
    }
}
