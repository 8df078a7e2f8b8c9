//! An enclave of a keystore: the files that one or more processes run with, in
//! SROS 2's layout (`<keystore>/enclaves/<name>/`), loaded and checked at once.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::certificate::{Certificate, RevocationList};
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::governance::Governance;
use crate::identity::{CertificateAuthority, CertificateRejection, Identity};
use crate::key::PrivateKey;
use crate::permissions::Permissions;
use crate::permissions::access_control::AccessControl;
use crate::smime::SignedDocument;

/// All that a participant needs to prove who it is and to judge others.
#[derive(Debug)]
pub struct Enclave {
    /// Where it lies.
    pub folder: PathBuf,
    /// The identity CA.
    pub identity_authority: CertificateAuthority,
    /// The permissions CA, which signs governance and permissions.
    pub permissions_authority: Certificate,
    /// Its own certificate and key.
    pub identity: Identity,
    /// The protection.
    pub governance: Governance,
    /// Its permissions document.
    pub permissions: Permissions,
    /// The signed permissions as they lie there, for peers.
    pub permissions_file: Vec<u8>,
    /// Weak settings that work.
    pub warnings: Vec<Diagnostic>,
}

impl Enclave {
    /// Loads an enclave. The error lists all problems that prevent its use.
    pub fn load(folder: &Path, now: UnixTime) -> Result<Self, Vec<Diagnostic>> {
        let mut loader = EnclaveLoader {
            folder,
            faults: Vec::new(),
            warnings: Vec::new(),
        };
        check_folder(folder).map_err(|fault| vec![fault])?;
        match loader.load(now) {
            Some(enclave) if loader.faults.is_empty() => Ok(enclave),
            _ => Err(loader.faults),
        }
    }

    /// Reads the revocation list again, if there is one. After an error the former
    /// list stays in force.
    pub fn reload_revocations(&mut self) -> Result<(), Diagnostic> {
        let path = self.folder.join("crl.pem");
        if is_named(&path) {
            let text = read_file(&path)?;
            let authority = &self.identity_authority.certificate;
            let list = RevocationList::from_pem(&display_path(&path), &text, authority)?;
            self.identity_authority.revoked = Some(list);
        }
        Ok(())
    }

    /// The access control of its participants in a domain.
    pub fn access(&self, domain: u32) -> Result<AccessControl, Diagnostic> {
        let leaf = self.identity.chain.first();
        let subject = leaf.map(Certificate::subject).ok_or_else(|| {
            let file = display_path(&self.folder);
            Diagnostic::new(file, "certificate", "", "there is none", "add a cert.pem")
        })?;
        AccessControl::new(&self.governance, &self.permissions, subject, domain)
    }
}

/// Outcome of reloading an enclave's files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// The certificate or the permissions have changed: peers have to authenticate
    /// the participant again.
    pub has_changed: bool,
    /// Changes that take effect only after a restart.
    pub ignored_changes: Vec<Diagnostic>,
}

impl Enclave {
    /// Reads the files again and applies what may change during a participant's
    /// life: certificate and key of the same subject, its permissions, and the
    /// revocation list. Governance and authorities do not change. Blocks for some
    /// milliseconds.
    ///
    /// # Errors
    /// The problems in the files, or changes that need a new participant. Nothing
    /// is changed then.
    pub fn reload(&mut self, now: UnixTime) -> Result<ReloadOutcome, Vec<Diagnostic>> {
        let new = Self::load(&self.folder, now)?;
        let restart = |file: &str, field: &str, reason: &str| {
            let file = display_path(&self.folder.join(file));
            let remedy =
                "restart the processes of this enclave; until then the former content is used";
            Diagnostic::new(file, field, "", reason, remedy)
        };
        let mut faults = Vec::new();
        if new.identity_authority.certificate != self.identity_authority.certificate {
            faults.push(restart(
                "identity_ca.cert.pem",
                "certificate",
                CHANGED_SINCE_START,
            ));
        }
        if new.permissions_authority != self.permissions_authority {
            faults.push(restart(
                "permissions_ca.cert.pem",
                "certificate",
                CHANGED_SINCE_START,
            ));
        }
        let subject = |enclave: &Self| {
            let leaf = enclave.identity.chain.first();
            leaf.map(|leaf| leaf.subject().clone())
        };
        let own = subject(self);
        if own != subject(&new) {
            let why = "has another subject, from which the participant's GUID is made";
            faults.push(restart("cert.pem", "certificate", why));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut outcome = ReloadOutcome::default();
        if new.governance.rules != self.governance.rules {
            let fault = restart(
                "governance.p7s",
                "<domain_access_rules>",
                CHANGED_SINCE_START,
            );
            outcome.ignored_changes.push(fault);
        }
        let grant = |enclave: &Self| enclave.permissions.grant(own.as_ref()?).cloned();
        outcome.has_changed =
            grant(self) != grant(&new) || self.identity.chain != new.identity.chain;
        self.identity = new.identity;
        self.permissions = new.permissions;
        self.permissions_file = new.permissions_file;
        if new.identity_authority.revoked.is_some() {
            self.identity_authority.revoked = new.identity_authority.revoked;
        }
        Ok(outcome)
    }
}

/// Loads an enclave and collects all problems, to report them together.
struct EnclaveLoader<'a> {
    folder: &'a Path,
    faults: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl EnclaveLoader<'_> {
    fn load(&mut self, now: UnixTime) -> Option<Enclave> {
        let identity_ca = self.authority("identity_ca.cert.pem", now);
        let permissions_ca = self.authority("permissions_ca.cert.pem", now);
        let revoked = identity_ca.as_ref().and_then(|ca| self.revoked(ca));
        let identity = self.identity();
        if let (Some(identity_ca), Some(permissions_ca)) = (&identity_ca, &permissions_ca)
            && identity_ca.key() == permissions_ca.key()
        {
            self.warn(
                "permissions_ca.cert.pem",
                "certificate",
                "one CA for identities and permissions: its key gives all rights",
                "create keystores with `pteros security create_keystore`, which creates two",
            );
        }
        let governance = permissions_ca
            .as_ref()
            .and_then(|ca| self.signed("governance.p7s", ca, now))
            .and_then(|(file, document, _)| {
                self.ok_or_record(Governance::read(document.source(&file)))
            });
        let permissions = permissions_ca
            .as_ref()
            .and_then(|ca| self.signed("permissions.p7s", ca, now))
            .and_then(|(file, document, bytes)| {
                let read = self.ok_or_record(Permissions::read(document.source(&file)));
                read.map(|permissions| (permissions, bytes))
            });
        let authority = CertificateAuthority {
            certificate: identity_ca?,
            revoked,
        };
        let identity = identity?;
        self.admit(&authority, &identity, now);
        let (permissions, permissions_file) = permissions?;
        self.admit_grant(&permissions, &identity, now);
        Some(Enclave {
            folder: self.folder.into(),
            identity_authority: authority,
            permissions_authority: permissions_ca?,
            identity,
            governance: governance?,
            permissions,
            permissions_file,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn authority(&mut self, name: &str, now: UnixTime) -> Option<Certificate> {
        let (file, text) = self.file(name)?;
        let certificates = self.ok_or_record(Certificate::from_pem(&file, &text))?;
        if certificates.len() != 1 {
            self.fault(
                name,
                "certificate",
                "holds more than one",
                "keep that of the CA",
            );
            return None;
        }
        let authority = certificates.into_iter().next()?;
        if let Some(reason) = authority.validity().rejection(now) {
            // Its signatures are not valid, either.
            self.fault(
                name,
                "certificate",
                reason,
                "set the clock if it is wrong; else all processes with this keystore need a new \
                 one: `pteros security create_keystore`",
            );
            return None;
        }
        Some(authority)
    }

    fn revoked(&mut self, authority: &Certificate) -> Option<RevocationList> {
        if !is_named(&self.folder.join("crl.pem")) {
            return None;
        }
        let (file, text) = self.file("crl.pem")?;
        self.ok_or_record(RevocationList::from_pem(&file, &text, authority))
    }

    fn identity(&mut self) -> Option<Identity> {
        let certificates = self
            .file("cert.pem")
            .and_then(|(file, text)| self.ok_or_record(Certificate::from_pem(&file, &text)));
        let key = self
            .file("key.pem")
            .and_then(|(file, text)| self.ok_or_record(PrivateKey::from_pem(&file, &text)));
        self.check_file_mode("key.pem");
        let (chain, key) = (certificates?, key?);
        let own = chain.first()?;
        if *own.key() != key.public_key() {
            self.fault(
                "key.pem",
                "private key",
                "does not belong to the certificate in cert.pem",
                "copy both files again, or create new ones with `pteros security create_enclave`",
            );
        }
        Some(Identity { chain, key })
    }

    fn signed(
        &mut self,
        name: &str,
        authority: &Certificate,
        now: UnixTime,
    ) -> Option<(String, SignedDocument, Vec<u8>)> {
        let (file, bytes) = self.file(name)?;
        let document = self.ok_or_record(SignedDocument::read(&file, &bytes, authority, now))?;
        Some((file, document, bytes))
    }

    fn admit(&mut self, authority: &CertificateAuthority, identity: &Identity, now: UnixTime) {
        if let Err(rejection) = authority.admit(&identity.chain, now) {
            let (name, field, remedy) = match &rejection {
                CertificateRejection::OutdatedList { .. } => (
                    "crl.pem",
                    "revocation list",
                    "get the latest one; `pteros security revoke` creates one",
                ),
                _ => (
                    "cert.pem",
                    "certificate",
                    "create a new one with `pteros security create_enclave`",
                ),
            };
            self.fault(name, field, rejection.to_string(), remedy);
            return;
        }
        let ends = identity.chain.iter().map(|one| one.validity().not_after);
        if let Some(end) = ends.min()
            && end < now.after_days(EXPIRY_WARNING_DAYS)
        {
            self.warn(
                "cert.pem",
                "certificate",
                format!("expires soon, at {end}"),
                "renew it with `pteros security create_enclave`",
            );
        }
    }

    fn admit_grant(&mut self, permissions: &Permissions, identity: &Identity, now: UnixTime) {
        let Some(own) = identity.chain.first() else {
            return;
        };
        let Some(grant) = permissions.grant(own.subject()) else {
            self.fault(
                "permissions.p7s",
                "<subject_name>",
                format!(
                    "no grant names '{}', the subject of cert.pem",
                    own.subject()
                ),
                "create a new one with `pteros security create_permission`",
            );
            return;
        };
        if let Some(rejection) = grant.validity.rejection(now) {
            let fault = Diagnostic::new(
                display_path(&self.folder.join("permissions.p7s")),
                "<validity>",
                &grant.name,
                rejection,
                "create a new one with `pteros security create_permission`",
            );
            self.faults.push(fault.at_line(grant.line));
        } else if grant.validity.not_after < now.after_days(EXPIRY_WARNING_DAYS) {
            self.warn(
                "permissions.p7s",
                "<validity>",
                format!("expires soon, at {}", grant.validity.not_after),
                "renew it with `pteros security create_permission`",
            );
        }
    }

    /// Name and content of a file of the enclave.
    fn file(&mut self, name: &str) -> Option<(String, Vec<u8>)> {
        let path = self.folder.join(name);
        let token = path.with_extension("p11");
        if !path.exists() && token.exists() {
            let reason = "names an object on a PKCS#11 token, which is not supported";
            let remedy = format!("put the object beside it as {name}, in PEM");
            let field = "PKCS#11";
            let fault = Diagnostic::new(display_path(&token), field, "", reason, remedy);
            self.faults.push(fault);
            return None;
        }
        let content = read_file(&path);
        let content = self.ok_or_record(content)?;
        Some((display_path(&path), content))
    }

    /// A readable private key can be used by every reader.
    fn check_file_mode(&mut self, name: &str) {
        let Ok(about) = fs::metadata(self.folder.join(name)) else {
            return;
        };
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            self.warn(
                name,
                "mode",
                format!("{mode:04o}: other users may read or change it"),
                "chmod 600",
            );
        }
    }

    fn ok_or_record<T>(&mut self, read: Result<T, Diagnostic>) -> Option<T> {
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn fault(&mut self, name: &str, field: &str, reason: impl Into<String>, remedy: &str) {
        let file = display_path(&self.folder.join(name));
        self.faults
            .push(Diagnostic::new(file, field, "", reason, remedy));
    }

    fn warn(&mut self, name: &str, field: &str, reason: impl Into<String>, remedy: &str) {
        let file = display_path(&self.folder.join(name));
        self.warnings
            .push(Diagnostic::new(file, field, "", reason, remedy));
    }
}

/// Whether a context may run without this enclave, where that is allowed at all. True
/// if it does not exist, false if it cannot be read.
pub fn is_missing(folder: &Path) -> bool {
    fs::metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn check_folder(folder: &Path) -> Result<(), Diagnostic> {
    let another = "name another one with ROS_SECURITY_ENCLAVE_OVERRIDE or --enclave, or create it \
                   with `pteros security create_enclave`";
    let (reason, remedy) = match fs::metadata(folder) {
        Ok(about) if about.is_dir() => return Ok(()),
        Ok(_) => ("is not a folder".into(), another),
        Err(error) if error.kind() == ErrorKind::NotFound => ("does not exist".into(), another),
        Err(error) => (format!("cannot be read: {error}"), REMEDY_RUN_AS_OWNER),
    };
    Err(Diagnostic::new(
        display_path(folder),
        "enclave",
        "",
        reason,
        remedy,
    ))
}

/// Whether a file or link with this name exists, even if it is dangling or
/// unreadable: it was put there to be used.
fn is_named(path: &Path) -> bool {
    let about = fs::symlink_metadata(path);
    !about.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Reads a regular file of a keystore, up to a size limit. Reading a pipe or a
/// device might not end.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let fault = |reason: String, remedy: &str| {
        Diagnostic::new(display_path(path), "file", "", reason, remedy)
    };
    let put = "copy it there, or create it with `pteros security`";
    let failed = |error: std::io::Error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => REMEDY_RUN_AS_OWNER,
            _ => put,
        };
        fault(format!("cannot be read: {error}"), remedy)
    };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(fault("not a regular file".into(), put));
    }
    let mut content = Vec::new();
    let opened = fs::File::open(path);
    opened
        .and_then(|file| {
            file.take(FILE_BYTES_MAX.saturating_add(1))
                .read_to_end(&mut content)
        })
        .map_err(failed)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        let reason = format!("larger than {FILE_BYTES_MAX} bytes");
        return Err(fault(reason, "is it the right file?"));
    }
    Ok(content)
}

pub(crate) fn display_path(path: &Path) -> String {
    path.display().to_string()
}

const REMEDY_RUN_AS_OWNER: &str = "run as the user who owns the file, or let this user read it";
const CHANGED_SINCE_START: &str = "differs from the one read at the start";
/// An expiry within this many days is reported as a warning.
const EXPIRY_WARNING_DAYS: u32 = 30;
const FILE_BYTES_MAX: u64 = 4 << 20;
