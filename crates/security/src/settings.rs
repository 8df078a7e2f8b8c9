//! Security settings from ROS 2's environment variables. Unlike in rcl, an invalid
//! value is an error: in rcl a misspelt strategy means to run unprotected where an
//! enclave is missing.

use std::path::PathBuf;

use crate::diagnostic::Diagnostic;

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
    pub fn read(look_up: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Diagnostic> {
        let given = |variable: &str| look_up(variable).filter(|value| !value.is_empty());
        let fault = |variable: &str, value: &str, reason: &str, remedy: &str| {
            Diagnostic::new("environment", variable, value, reason, remedy)
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
                "set it to the folder of the keystore",
            )
        })?;
        Ok(Some(Self {
            enforce,
            keystore: keystore.into(),
            enclave_override: given(OVERRIDE),
        }))
    }

    /// The folder of the enclave that a context uses.
    pub fn folder(&self, enclave: &str) -> Result<PathBuf, Diagnostic> {
        let name = self.enclave_override.as_deref().unwrap_or(enclave);
        Ok(self.keystore.join("enclaves").join(relative(name)?))
    }
}

/// The name of an enclave as a path below `enclaves`. A name is `/` and words of
/// letters, digits and underscores, so it cannot leave that folder.
pub(crate) fn relative(enclave: &str) -> Result<PathBuf, Diagnostic> {
    let fault = |reason: &str| {
        let remedy = "write a name like /robot/arm";
        Diagnostic::new("enclave", "name", enclave, reason, remedy)
    };
    let words = enclave
        .strip_prefix('/')
        .ok_or_else(|| fault("does not begin with /"))?;
    if words.is_empty() {
        return Ok(PathBuf::new());
    }
    if enclave.len() > NAME_BYTES {
        return Err(fault("longer than 255 characters"));
    }
    for word in words.split('/') {
        let letters = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if word.is_empty() || !letters || word.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(fault(
                "its words are letters, digits and underscores, and begin with no digit",
            ));
        }
    }
    Ok(words.into())
}

const ENABLE: &str = "ROS_SECURITY_ENABLE";
const STRATEGY: &str = "ROS_SECURITY_STRATEGY";
const KEYSTORE: &str = "ROS_SECURITY_KEYSTORE";
const OVERRIDE: &str = "ROS_SECURITY_ENCLAVE_OVERRIDE";
/// The limit in rmw's validation of enclave names.
const NAME_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Option<SecuritySettings>, Diagnostic> {
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
            assert_eq!((&*fault.field, &*fault.value), (variable, value));
        }
        assert_eq!(settings(&[on[0]]).unwrap_err().field.as_ref(), KEYSTORE);
    }

    #[test]
    fn no_enclave_lies_outside_the_keystore() {
        let on = [(ENABLE, "true"), (KEYSTORE, "ks")];
        let on = settings(&on).unwrap().unwrap();
        assert_eq!(on.folder("/").unwrap(), PathBuf::from("ks/enclaves/"));
        assert_eq!(
            on.folder("/robot/arm_1").unwrap(),
            PathBuf::from("ks/enclaves/robot/arm_1")
        );
        for name in [
            "", "arm", "/../arm", "/arm/", "//arm", "/1arm", "/a b", "/ä",
        ] {
            assert!(on.folder(name).is_err(), "{name}");
        }
    }
}
