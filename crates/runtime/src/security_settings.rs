//! Security settings from ROS 2's environment variables. Unlike in rcl, an invalid value
//! is an error. In rcl a misspelt strategy runs unprotected if an enclave is missing.

use std::path::PathBuf;

use crate::config_error::ConfigError;

/// The security settings of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecuritySettings {
    /// `ROS_SECURITY_STRATEGY`: whether to refuse to run without an enclave.
    /// Default: true.
    pub enforce: bool,
    /// `ROS_SECURITY_KEYSTORE`
    pub keystore: PathBuf,
    /// `ROS_SECURITY_ENCLAVE_OVERRIDE`
    pub enclave_override: Option<String>,
}

impl SecuritySettings {
    /// Reads the variables; `None` if security is off.
    ///
    /// # Errors
    /// An invalid value, since it could mean unprotected communication.
    pub fn read(
        look_up: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let given = |variable| look_up(variable).filter(|value| !value.is_empty());
        let fault = |variable, value: &str, reason: &str, remedy: &str| ConfigError {
            variable,
            value: value.into(),
            reason: reason.into(),
            hint: remedy.into(),
        };
        match given(ENABLE).as_deref() {
            Some("true") => {}
            None | Some("false") => return Ok(None),
            Some(other) => {
                return Err(fault(
                    ENABLE,
                    other,
                    "neither true nor false",
                    "set it to true, or unset it",
                ));
            }
        }
        let enforce = match given(STRATEGY).as_deref() {
            None | Some("Enforce") => true,
            Some("Permissive") => false,
            Some(other) => {
                return Err(fault(
                    STRATEGY,
                    other,
                    "neither Enforce nor Permissive",
                    "set it to Enforce",
                ));
            }
        };
        let keystore = given(KEYSTORE).ok_or_else(|| {
            fault(
                KEYSTORE,
                "",
                "not set, though security is on",
                "set it to the folder of the keystore, or unset ROS_SECURITY_ENABLE; the program needs feature `security`",
            )
        })?;
        Ok(Some(Self {
            enforce,
            keystore: keystore.into(),
            enclave_override: given(OVERRIDE),
        }))
    }
}

const ENABLE: &str = "ROS_SECURITY_ENABLE";
const STRATEGY: &str = "ROS_SECURITY_STRATEGY";
const KEYSTORE: &str = "ROS_SECURITY_KEYSTORE";
const OVERRIDE: &str = "ROS_SECURITY_ENCLAVE_OVERRIDE";

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Option<SecuritySettings>, ConfigError> {
        SecuritySettings::read(|name| {
            let mut found = given.iter().filter(|(known, _)| *known == name);
            found.next().map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn security_is_enforced_unless_the_word_is_exactly_permissive() {
        let on = [(ENABLE, "true"), (KEYSTORE, "ks")];
        assert_eq!(settings(&[]), Ok(None));
        assert_eq!(settings(&[(ENABLE, "false")]), Ok(None));
        assert!(settings(&on).unwrap().unwrap().enforce);
        for (strategy, enforce) in [("Enforce", Some(true)), ("Permissive", Some(false))] {
            let given = [on[0], on[1], (STRATEGY, strategy)];
            assert_eq!(settings(&given).unwrap().map(|s| s.enforce), enforce);
        }
        for (variable, value) in [
            (STRATEGY, "enforce"),
            (STRATEGY, "Enfroce"),
            (STRATEGY, "permissive"),
            (ENABLE, "True"),
            (ENABLE, "1"),
        ] {
            let given = [(variable, value), on[0], on[1]];
            let fault = settings(&given).unwrap_err();
            assert_eq!((fault.variable, &*fault.value), (variable, value));
        }
        assert_eq!(settings(&[on[0]]).unwrap_err().variable, KEYSTORE);
    }
}
