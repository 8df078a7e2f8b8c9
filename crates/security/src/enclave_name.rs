//! Names of enclaves: the path of each below a keystore's folder `enclaves`.

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;

/// The folder of an enclave in a keystore.
///
/// # Errors
/// The name is none of an enclave.
pub fn enclave_folder(keystore: &Path, enclave: &str) -> Result<PathBuf, Diagnostic> {
    Ok(keystore.join("enclaves").join(relative(enclave)?))
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

/// The limit in rmw's validation of enclave names.
const NAME_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_enclave_lies_outside_the_keystore() {
        let folder = |name| enclave_folder(Path::new("ks"), name);
        assert_eq!(folder("/").unwrap(), PathBuf::from("ks/enclaves/"));
        assert_eq!(
            folder("/robot/arm_1").unwrap(),
            PathBuf::from("ks/enclaves/robot/arm_1")
        );
        let longest = format!("/{}", "a".repeat(254));
        assert!(folder(&longest).is_ok());
        let too_long = format!("{longest}a");
        assert!(folder(&too_long).is_err());
        for name in [
            "", "arm", "/../arm", "/arm/", "//arm", "/1arm", "/a b", "/ä",
        ] {
            assert!(folder(name).is_err(), "{name}");
        }
    }
}
