//! Settings of the Zenoh transport from the environment: the variables of rmw_zenoh_cpp.
//!
//! They are read with all others, and used only where the transport is built and chosen.

use std::path::PathBuf;

use pteros_msg::regular_file;

use crate::config_error::ConfigError;

/// Largest configuration file of sessions.
const SESSION_CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The variables that [`ZenohSettings::read`] reads.
const ZENOH_VARIABLES: [&str; 4] = [
    "ZENOH_SESSION_CONFIG_URI",
    "ZENOH_ROUTER_CONFIG_URI",
    "ZENOH_CONFIG_OVERRIDE",
    "ZENOH_ROUTER_CHECK_ATTEMPTS",
];

/// Wire protocols of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum WireChoice {
    /// RTPS, and shared memory on one host.
    #[default]
    Rtps,
    /// Zenoh, compatible with rmw_zenoh_cpp. Processes of Pteros on one host use shared
    /// memory; RTPS reaches no other process.
    Zenoh,
    /// Both at once. A peer that both reach is served by RTPS alone.
    Both,
}

impl WireChoice {
    /// The fault of any other name.
    pub const REASON: &str = "neither rtps, zenoh nor rtps,zenoh";
    /// The remedy for it.
    pub const HINT: &str = "write rtps,zenoh for nodes that both kinds of peers see";

    /// The choice of that name, as `--wire` and `PTEROS_WIRE` take it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "rtps" => Some(Self::Rtps),
            "zenoh" => Some(Self::Zenoh),
            "rtps,zenoh" | "zenoh,rtps" => Some(Self::Both),
            _ => None,
        }
    }

    /// Whether RTPS reaches every participant of the domain.
    pub fn has_rtps(self) -> bool {
        self != Self::Zenoh
    }

    /// Whether Zenoh is open.
    pub fn has_zenoh(self) -> bool {
        self != Self::Rtps
    }
}

/// Settings from the environment variables of rmw_zenoh_cpp.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ZenohSettings {
    /// `ZENOH_SESSION_CONFIG_URI`: the configuration file of sessions, instead of the
    /// defaults.
    pub session_config: Option<PathBuf>,
    /// `ZENOH_ROUTER_CONFIG_URI`: the same of a router.
    pub router_config: Option<PathBuf>,
    /// `ZENOH_CONFIG_OVERRIDE`: settings and their JSON5 values, which replace those of
    /// either.
    pub overrides: Vec<(String, String)>,
    /// `ZENOH_ROUTER_CHECK_ATTEMPTS`: number of checks for a router, once a second, before
    /// the session opens. 0 means without limit, a negative number never.
    pub router_check_attempts: Option<i64>,
}

impl ZenohSettings {
    /// Group of contexts of this host that may use shared memory beside Zenoh. They have
    /// one domain and equal settings, so that two Zenoh networks on one host are
    /// separate. Reads the configuration file of sessions; with an unreadable one,
    /// opening the session fails later. Higher than every domain id.
    pub fn host_group(&self, domain_id: u32) -> u32 {
        let file = self.session_config.as_ref();
        let contents = file.map(|path| {
            let read = regular_file::read(path, SESSION_CONFIG_BYTES_MAX);
            read.unwrap_or_default()
        });
        let mut hash = Fnv::new();
        hash.add(&domain_id.to_le_bytes());
        hash.add(&contents.unwrap_or_default());
        for (key, value) in &self.overrides {
            hash.add(key.as_bytes());
            hash.add(value.as_bytes());
        }
        hash.0 | 1 << 31
    }

    /// Reads the variables. An empty value counts as unset.
    ///
    /// # Errors
    /// A value that is malformed.
    pub fn read(look_up: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let given = |variable| look_up(variable).filter(|value| !value.is_empty());
        let [session, router, overrides, attempts] = ZENOH_VARIABLES;
        let error = |variable, value: &str, reason: &str, hint: &str| ConfigError {
            variable,
            value: value.into(),
            reason: reason.into(),
            hint: hint.into(),
        };
        let parse = |text: String| {
            text.trim().parse().map_err(|_| {
                error(
                    attempts,
                    &text,
                    "not a number",
                    "set it to the number of looks for a router, one a second; 0 waits for ever, \
                     -1 does not look",
                )
            })
        };
        let router_check_attempts = given(attempts).map(parse).transpose()?;
        let text = given(overrides).unwrap_or_default();
        let settings = text.split(';').map(str::trim);
        let settings = settings.filter(|setting| !setting.is_empty());
        let split = |setting: &str| {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                error(
                    overrides,
                    &text,
                    &format!("no = in {setting:?}"),
                    "write key=value;key=value, as mode=\"client\";listen/endpoints=[]",
                )
            })?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        };
        Ok(Self {
            session_config: given(session).map(Into::into),
            router_config: given(router).map(Into::into),
            overrides: settings.map(split).collect::<Result<_, ConfigError>>()?,
            router_check_attempts,
        })
    }
}

/// FNV-1a of 32 bits, of parts that are each ended by a byte that no text has.
struct Fnv(u32);

impl Fnv {
    fn new() -> Self {
        Self(0x811c_9dc5)
    }

    fn add(&mut self, part: &[u8]) {
        for byte in part.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<ZenohSettings, ConfigError> {
        ZenohSettings::read(|variable| {
            let found = set.iter().find(|(name, _)| *name == variable);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn overrides_are_pairs_with_semicolons_between() {
        let text = "mode=\"client\"; connect/endpoints=[\"tcp/10.0.0.1:7447\"];";
        let settings = read(&[
            ("ZENOH_CONFIG_OVERRIDE", text),
            ("ZENOH_ROUTER_CHECK_ATTEMPTS", "-1"),
            ("ZENOH_SESSION_CONFIG_URI", "/etc/session.json5"),
        ])
        .unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            settings.overrides,
            [
                pair("mode", "\"client\""),
                pair("connect/endpoints", "[\"tcp/10.0.0.1:7447\"]"),
            ]
        );
        assert_eq!(settings.router_check_attempts, Some(-1));
        assert_eq!(
            settings.session_config,
            Some(PathBuf::from("/etc/session.json5"))
        );
        assert_eq!(read(&[]), Ok(ZenohSettings::default()));
    }

    #[test]
    fn a_malformed_value_names_its_variable() {
        let error = read(&[("ZENOH_CONFIG_OVERRIDE", "mode")]).unwrap_err();
        assert_eq!(error.reason, "no = in \"mode\"");
        let error = read(&[("ZENOH_ROUTER_CHECK_ATTEMPTS", "often")]).unwrap_err();
        assert_eq!(error.variable, "ZENOH_ROUTER_CHECK_ATTEMPTS");
    }

    #[test]
    fn processes_of_one_domain_with_the_same_settings_are_a_group() {
        let by = |port: u32| {
            let text = format!("connect/endpoints=[\"tcp/10.0.0.1:{port}\"]");
            read(&[("ZENOH_CONFIG_OVERRIDE", &text)]).unwrap()
        };
        let group = by(7447).host_group(0);
        assert_eq!(group, by(7447).host_group(0));
        assert!(group > 232, "no domain id");
        assert_ne!(group, by(7448).host_group(0));
        assert_ne!(group, by(7447).host_group(1));
        assert_ne!(group, ZenohSettings::default().host_group(0));
    }
}
