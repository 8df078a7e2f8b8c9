//! Keystores of secured experiments, with one enclave for all processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use pteros_security::date::UnixTime;
use pteros_security::governance::Protection;
use pteros_security::keystore::{Keystore, Options};

/// The protection that a governance document asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rules {
    /// The governance of Fernandez et al. 2020: authentication, access control,
    /// whole RTPS messages encrypted, and nothing encrypted twice.
    F20,
    /// The governance that SROS 2 ships: whole messages signed, submessages and
    /// payloads encrypted.
    Sros2,
}

/// The enclave of all processes.
pub const ENCLAVE: &str = "/lab";

const GOVERNANCE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<dds>
  <domain_access_rules>
    <domain_rule>
      <domains>
        <id>0</id>
      </domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>NONE</discovery_protection_kind>
      <liveliness_protection_kind>NONE</liveliness_protection_kind>
      <rtps_protection_kind>ENCRYPT</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>false</enable_discovery_protection>
          <enable_liveliness_protection>false</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>NONE</metadata_protection_kind>
          <data_protection_kind>NONE</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"#;

/// Creates a keystore in `root`, which is emptied, and returns the enclave's
/// folder.
///
/// # Errors
/// A file cannot be written.
pub fn make(root: &Path, rules: Rules) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(root);
    if rules == Rules::F20 {
        // A governance that is there is kept.
        let governance = root.join("enclaves/governance.xml");
        let folder = fs::create_dir_all(root.join("enclaves"));
        let written = folder.and_then(|()| fs::write(&governance, GOVERNANCE));
        written.with_context(|| format!("write {}", governance.display()))?;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let now = UnixTime(i64::try_from(since.as_secs())?);
    let options = Options {
        rtps: match rules {
            Rules::F20 => Protection::Encrypt,
            Rules::Sros2 => Protection::Sign,
        },
        ..Options::default()
    };
    let keystore = Keystore::create(root, &options, now).map_err(|fault| anyhow!("{fault}"))?;
    let enclave = keystore.create_enclave(ENCLAVE, None, &options, now);
    let enclave = enclave.map_err(|fault| anyhow!("{fault}"))?;
    // Programs of other stacks use topics without the ROS 2 prefix.
    let document = enclave.join("permissions.xml");
    let widen = || {
        fs::write(
            &document,
            fs::read_to_string(&document)?.replace("rt/*", "*"),
        )
    };
    widen().with_context(|| format!("write {}", document.display()))?;
    keystore.sign(now).map_err(|fault| anyhow!("{fault}"))?;
    Ok(enclave)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn the_enclave_has_every_file_and_permits_every_topic() {
        let root = Folder::absent("lab-keystore");
        let enclave = make(&root, Rules::F20).expect("a keystore");
        for file in ["cert.pem", "key.pem", "governance.p7s", "permissions.p7s"] {
            assert!(enclave.join(file).exists(), "{file}");
        }
        let allowed = fs::read_to_string(enclave.join("permissions.xml")).expect("permissions");
        assert!(allowed.contains("<topic>*</topic>"), "{allowed}");
        let governance = fs::read_to_string(root.join("enclaves/governance.xml"));
        let governance = governance.expect("governance");
        assert!(
            governance.contains("<rtps_protection_kind>ENCRYPT"),
            "ours is kept"
        );
    }
}
