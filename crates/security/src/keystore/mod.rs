//! Keystores in SROS 2's layout, for nodes of any stack:
//!
//! ```text
//! public/       identity_ca.cert.pem  permissions_ca.cert.pem  [crl.pem]
//! private/      identity_ca.key.pem   permissions_ca.key.pem
//! enclaves/     governance.xml  governance.p7s
//! enclaves/a/b/ cert.pem  key.pem  permissions.xml  permissions.p7s, and links to what is common
//! ```
//!
//! Differences from SROS 2's: there are two authorities, only the owner can read
//! private keys, whole messages are encrypted, and the validity is an option.
//! Existing files are replaced atomically, or kept.

mod check;
mod write;

use std::path::{Path, PathBuf};

pub use check::{Finding, Severity, check};

use crate::certificate::{Certificate, RevocationList};
use crate::date::{UnixTime, Validity};
use crate::diagnostic::Diagnostic;
use crate::document::DocumentSource;
use crate::enclave::{display_path, read_file};
use crate::enclave_name::enclave_folder;
use crate::governance::{Governance, Protection};
use crate::issue;
use crate::key::PrivateKey;
use crate::permissions::Permissions;
use crate::policy::PolicyEnclave;
use crate::smime;
pub(crate) use write::write_public;
use write::{link, make_folder, write_private};

/// A folder with authorities, enclaves and their documents, as SROS 2 lays it out.
#[derive(Debug)]
pub struct Keystore {
    root: PathBuf,
}

/// Options for new keystores, enclaves and documents.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Validity in days, limited by the issuer's validity.
    pub days: u32,
    /// The domain that governance and permissions are for.
    pub domain: u32,
    /// Protection of whole messages. Without encryption, everyone on the network
    /// can read the names of nodes and traffic patterns of topics.
    pub rtps: Protection,
}

impl Default for Options {
    /// Ten years as in SROS 2, domain 0, encrypted.
    fn default() -> Self {
        Self {
            days: 3650,
            domain: 0,
            rtps: Protection::Encrypt,
        }
    }
}

/// An authority with its key.
struct Issuer {
    certificate: Certificate,
    key: PrivateKey,
}

impl Keystore {
    /// Creates a keystore in a folder without one: two authorities and the signed
    /// governance.
    pub fn create(root: &Path, options: &Options, now: UnixTime) -> Result<Self, Diagnostic> {
        let keystore = Self { root: root.into() };
        if keystore.is_complete() {
            return Err(Diagnostic::new(
                display_path(root),
                "keystore",
                "",
                "there is one already",
                "use it, or name another folder",
            ));
        }
        for folder in ["public", "enclaves"] {
            make_folder(&root.join(folder), 0o755)?;
        }
        make_folder(&root.join("private"), 0o700)?;
        for role in ["identity_ca", "permissions_ca"] {
            let has = |path: PathBuf| path.exists();
            if has(keystore.public(role)) && has(keystore.private(role)) {
                continue;
            }
            let key = PrivateKey::generate().map_err(|error| keystore.failed(role, &error))?;
            let validity = validity(options.days, now, None);
            let certificate = issue::authority(&format!("pteros {role}"), &key, validity)
                .map_err(|error| keystore.failed(role, &error))?;
            keystore.write_key(&keystore.private(role), &key)?;
            write_public(&keystore.public(role), &certificate.to_pem())?;
        }
        let governance = root.join("enclaves/governance.xml");
        if !governance.exists() {
            write_public(&governance, &governance_document(options))?;
        }
        keystore.sign_governance(now)?;
        Ok(keystore)
    }

    /// Opens an existing keystore, ours or SROS 2's.
    pub fn open(root: &Path) -> Result<Self, Diagnostic> {
        let keystore = Self { root: root.into() };
        if keystore.is_complete() {
            return Ok(keystore);
        }
        Err(Diagnostic::new(
            display_path(root),
            "keystore",
            "",
            "there is none, or its authorities' certificates, keys or governance are missing",
            "create one with `pteros security create_keystore`",
        ))
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the certificate of an enclave is on the keystore's revocation list.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn is_revoked(&self, name: &str) -> Result<bool, Diagnostic> {
        let own = certificate(&self.existing_enclave(name)?.join("cert.pem"))?;
        let authority = certificate(&self.public("identity_ca"))?;
        let list = self.revocations(&authority)?;
        Ok(list.is_some_and(|list| list.revoked(&own).is_some()))
    }

    /// How many certificates its identity CA has revoked. Reads files.
    ///
    /// # Errors
    /// A certificate or revocation list that cannot be read.
    pub fn revoked_count(&self) -> Result<usize, Diagnostic> {
        let authority = certificate(&self.public("identity_ca"))?;
        let list = self.revocations(&authority)?;
        Ok(list.map_or(0, |list| list.count()))
    }

    /// Names of its enclaves, sorted.
    pub fn enclaves(&self) -> Result<Vec<String>, Diagnostic> {
        let mut names = Vec::new();
        let folder = self.root.join("enclaves");
        list(&folder, &mut String::new(), 0, &mut names)?;
        names.sort();
        Ok(names)
    }

    /// Creates the missing files of an enclave: key, certificate, permissions,
    /// links. A revoked certificate, or one that expires within a month, is
    /// replaced. An existing permissions.xml is signed unchanged. A new one allows
    /// the rules of `policy`, or everything without one.
    pub fn create_enclave(
        &self,
        name: &str,
        policy: Option<&PolicyEnclave>,
        options: &Options,
        now: UnixTime,
    ) -> Result<PathBuf, Diagnostic> {
        let folder = self.folder(name)?;
        make_folder(&folder, 0o755)?;
        for role in ["identity_ca", "permissions_ca"] {
            link(&self.public(role), &folder.join(format!("{role}.cert.pem")))?;
        }
        link(
            &self.root.join("enclaves/governance.p7s"),
            &folder.join("governance.p7s"),
        )?;
        let list = self.root.join("public/crl.pem");
        if list.exists() {
            link(&list, &folder.join("crl.pem"))?;
        }
        self.certify(name, &folder, options, now)?;
        let document = folder.join("permissions.xml");
        if policy.is_some() || !document.exists() {
            let own = certificate(&folder.join("cert.pem"))?;
            let validity = Validity {
                not_before: own.validity().not_before,
                not_after: validity(options.days, now, Some(own.validity().not_after)).not_after,
            };
            let policy = policy
                .cloned()
                .unwrap_or_else(|| PolicyEnclave::permissive(name));
            write_public(&document, &policy.permissions(options.domain, validity))?;
        }
        self.sign_permissions(&folder, now)?;
        Ok(folder)
    }

    /// Replaces the permissions of an existing enclave.
    pub fn create_permission(
        &self,
        name: &str,
        policy: &PolicyEnclave,
        options: &Options,
        now: UnixTime,
    ) -> Result<PathBuf, Diagnostic> {
        self.existing_enclave(name)?;
        self.create_enclave(name, Some(policy), options, now)
    }

    /// Checks and signs the existing governance.xml and every permissions.xml,
    /// after they were edited. Returns the enclaves.
    pub fn sign(&self, now: UnixTime) -> Result<Vec<String>, Diagnostic> {
        self.sign_governance(now)?;
        let names = self.enclaves()?;
        for name in &names {
            let folder = self.folder(name)?;
            if folder.join("permissions.xml").exists() {
                self.sign_permissions(&folder, now)?;
            }
        }
        Ok(names)
    }

    /// Revokes an enclave's certificate, and links the list into every enclave.
    pub fn revoke(
        &self,
        name: &str,
        options: &Options,
        now: UnixTime,
    ) -> Result<Certificate, Diagnostic> {
        let file = self.existing_enclave(name)?.join("cert.pem");
        let revoked = certificate(&file)?;
        let issuer = self.issuer("identity_ca")?;
        if let Err(reason) = revoked.is_signed_by(&issuer.certificate) {
            let remedy = "revoke it with the keystore that issued it";
            return Err(Diagnostic::new(
                display_path(&file),
                "certificate",
                name,
                reason,
                remedy,
            ));
        }
        let former = self.revocations(&issuer.certificate)?;
        let ends = issuer.certificate.validity().not_after;
        let list = issue::revocation_list(
            former.as_ref(),
            std::slice::from_ref(&revoked),
            &issuer.certificate,
            &issuer.key,
            Validity {
                not_before: now,
                not_after: validity(options.days, now, Some(ends)).not_after,
            },
        )
        .map_err(|error| self.failed("crl.pem", &error))?;
        let path = self.root.join("public/crl.pem");
        write_public(&path, &list)?;
        for name in self.enclaves()? {
            link(&path, &self.folder(&name)?.join("crl.pem"))?;
        }
        Ok(revoked)
    }

    /// The folder of an existing enclave. Reads the file system.
    ///
    /// # Errors
    /// A name that is invalid or unknown.
    pub fn existing_enclave(&self, name: &str) -> Result<PathBuf, Diagnostic> {
        let folder = self.folder(name)?;
        if folder.join("cert.pem").exists() {
            return Ok(folder);
        }
        let reason = "the keystore has no enclave with this name";
        let remedy = "create it with `pteros security create_enclave`";
        Err(Diagnostic::new(
            display_path(&self.root),
            "enclave",
            name,
            reason,
            remedy,
        ))
    }

    /// Key and certificate of an enclave.
    fn certify(
        &self,
        name: &str,
        folder: &Path,
        options: &Options,
        now: UnixTime,
    ) -> Result<(), Diagnostic> {
        let (key_file, file) = (folder.join("key.pem"), folder.join("cert.pem"));
        let issuer = self.issuer("identity_ca")?;
        let revocations = self.revocations(&issuer.certificate)?;
        let mut key = None;
        if key_file.exists() && file.exists() {
            let own = certificate(&file)?;
            let revoked = revocations.is_some_and(|list| list.revoked(&own).is_some());
            let soon = own.validity().not_after < now.after_days(RENEWAL_DAYS);
            let belongs = own.is_signed_by(&issuer.certificate).is_ok();
            if belongs && !revoked && !soon {
                return Ok(());
            }
            // The key of a revoked certificate may be compromised.
            if !revoked {
                let text = read_file(&key_file)?;
                key = Some(PrivateKey::from_pem(&display_path(&key_file), &text)?);
            }
        }
        let key = match key {
            Some(key) => key,
            None => {
                let key = PrivateKey::generate().map_err(|error| self.failed(name, &error))?;
                self.write_key(&key_file, &key)?;
                key
            }
        };
        let ends = issuer.certificate.validity().not_after;
        let validity = validity(options.days, now, Some(ends));
        let public_key = key.public_key();
        let certificate = issue::identity(
            name,
            &public_key,
            &issuer.certificate,
            &issuer.key,
            validity,
        )
        .map_err(|error| self.failed(name, &error))?;
        write_public(&file, &certificate.to_pem())
    }

    fn sign_governance(&self, now: UnixTime) -> Result<(), Diagnostic> {
        let folder = self.root.join("enclaves");
        self.sign_document(&folder, "governance", now, |source| {
            Governance::read(source).map(drop)
        })
    }

    fn sign_permissions(&self, folder: &Path, now: UnixTime) -> Result<(), Diagnostic> {
        self.sign_document(folder, "permissions", now, |source| {
            Permissions::read(source).map(drop)
        })
    }

    fn sign_document(
        &self,
        folder: &Path,
        name: &str,
        now: UnixTime,
        read: impl FnOnce(DocumentSource<'_>) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let path = folder.join(format!("{name}.xml"));
        let content = read_file(&path)?;
        let file = display_path(&path);
        let text = String::from_utf8(content).map_err(|_| {
            Diagnostic::new(
                &*file,
                "document",
                "",
                "it is not UTF-8",
                "save it as UTF-8",
            )
        })?;
        read(DocumentSource {
            file: &file,
            first_line: 1,
            text: &text,
        })?;
        let issuer = self.issuer("permissions_ca")?;
        let signed = smime::sign(&text, &issuer.certificate, &issuer.key, now)
            .map_err(|error| self.failed(&file, &error))?;
        write_public(&folder.join(format!("{name}.p7s")), &signed)
    }

    fn issuer(&self, role: &str) -> Result<Issuer, Diagnostic> {
        let path = self.private(role);
        let key = PrivateKey::from_pem(&display_path(&path), &read_file(&path)?)?;
        let certificate = certificate(&self.public(role))?;
        if *certificate.key() != key.public_key() {
            return Err(Diagnostic::new(
                display_path(&path),
                "private key",
                "",
                format!("does not belong to public/{role}.cert.pem"),
                "copy both from the same keystore",
            ));
        }
        Ok(Issuer { certificate, key })
    }

    fn revocations(&self, authority: &Certificate) -> Result<Option<RevocationList>, Diagnostic> {
        let path = self.root.join("public/crl.pem");
        if !path.exists() {
            return Ok(None);
        }
        RevocationList::from_pem(&display_path(&path), &read_file(&path)?, authority).map(Some)
    }

    fn folder(&self, name: &str) -> Result<PathBuf, Diagnostic> {
        enclave_folder(&self.root, name)
    }

    fn public(&self, role: &str) -> PathBuf {
        self.root.join(format!("public/{role}.cert.pem"))
    }

    fn private(&self, role: &str) -> PathBuf {
        self.root.join(format!("private/{role}.key.pem"))
    }

    fn is_complete(&self) -> bool {
        let roles = ["identity_ca", "permissions_ca"];
        self.root.join("enclaves/governance.p7s").is_file()
            && roles.iter().all(|role| self.public(role).is_file())
            && roles.iter().all(|role| self.private(role).is_file())
    }

    fn write_key(&self, path: &Path, key: &PrivateKey) -> Result<(), Diagnostic> {
        let pem = key
            .to_pem()
            .map_err(|error| self.failed(&display_path(path), &error))?;
        write_private(path, &pem)
    }

    fn failed(&self, what: &str, error: &dyn std::error::Error) -> Diagnostic {
        let remedy = "try again; nothing was replaced";
        Diagnostic::new(
            display_path(&self.root),
            what,
            "",
            error.to_string(),
            remedy,
        )
    }
}

fn certificate(path: &Path) -> Result<Certificate, Diagnostic> {
    let file = display_path(path);
    let mut all = Certificate::from_pem(&file, &read_file(path)?)?.into_iter();
    all.next().ok_or_else(|| {
        Diagnostic::new(
            file,
            "certificate",
            "",
            "there is none",
            "copy the file again",
        )
    })
}

/// From a day ago, since clocks of robots differ, for `days` days, limited by the
/// issuer's validity.
fn validity(days: u32, now: UnixTime, end: Option<UnixTime>) -> Validity {
    let not_after = now.after_days(days);
    Validity {
        not_before: UnixTime(now.0.saturating_sub(86_400)),
        not_after: end.map_or(not_after, |end| end.min(not_after)),
    }
}

/// Enclaves below a folder: every folder with a private key.
fn list(
    folder: &Path,
    name: &mut String,
    depth: usize,
    names: &mut Vec<String>,
) -> Result<(), Diagnostic> {
    if folder.join("key.pem").exists() {
        names.push(if name.is_empty() {
            "/".into()
        } else {
            name.clone()
        });
    }
    if depth >= DEPTH {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "name the folder of a keystore, or create one with `pteros security create_keystore`"
            }
            _ => "run as the user who owns the keystore",
        };
        let reason = format!("cannot be listed: {error}");
        Diagnostic::new(display_path(folder), "folder", "", reason, remedy)
    })?;
    for entry in entries.flatten() {
        // Links to folders may be circular.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let length = name.len();
            name.push('/');
            name.push_str(&entry.file_name().to_string_lossy());
            list(&entry.path(), name, depth.saturating_add(1), names)?;
            name.truncate(length);
        }
    }
    Ok(())
}

/// SROS 2's default, except for whole messages.
fn governance_document(options: &Options) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<dds xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:noNamespaceSchemaLocation=\"http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_governance.xsd\">
  <domain_access_rules>
    <domain_rule>
      <domains>
        <id>{}</id>
      </domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
      <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
      <rtps_protection_kind>{}</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>true</enable_discovery_protection>
          <enable_liveliness_protection>true</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>ENCRYPT</metadata_protection_kind>
          <data_protection_kind>ENCRYPT</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
",
        options.domain,
        options.rtps.as_str()
    )
}

/// A certificate that expires sooner is replaced.
const RENEWAL_DAYS: u32 = 30;
/// Limit of nested enclave names.
const DEPTH: usize = 32;
