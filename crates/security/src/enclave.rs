//! An enclave of a keystore: the files that one or more processes run with, in
//! SROS 2's layout (`<keystore>/enclaves/<name>/`), loaded and checked at once.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::certificate::{Certificate, RevocationList};
use crate::date::UnixTime;
use crate::fault::Fault;
use crate::governance::Governance;
use crate::identity::{Authority, Identity, Refusal};
use crate::key::PrivateKey;
use crate::permissions::Permissions;
use crate::permissions::access::Access;
use crate::smime::SignedDocument;

/// All that a participant needs to prove who it is and to judge others.
#[derive(Debug)]
pub struct Enclave {
    /// Where it lies.
    pub folder: PathBuf,
    /// Who issues identities.
    pub identity_authority: Authority,
    /// Who signs governance and permissions.
    pub permissions_authority: Certificate,
    /// Its own certificate and key.
    pub identity: Identity,
    /// What is protected.
    pub governance: Governance,
    /// What it may do.
    pub permissions: Permissions,
    /// The signed permissions as they lie there, for peers.
    pub permissions_file: Vec<u8>,
    /// What is weak, though it works.
    pub warnings: Vec<Fault>,
}

impl Enclave {
    /// Loads an enclave; the faults are all that keep it from being used.
    pub fn load(folder: &Path, now: UnixTime) -> Result<Self, Vec<Fault>> {
        let mut loading = Loading {
            folder,
            faults: Vec::new(),
            warnings: Vec::new(),
        };
        look_at_folder(folder).map_err(|fault| vec![fault])?;
        match loading.load(now) {
            Some(enclave) if loading.faults.is_empty() => Ok(enclave),
            _ => Err(loading.faults),
        }
    }

    /// Reads the revocation list again, if there is one. After a fault the list
    /// that was read before holds.
    pub fn renew_revocations(&mut self) -> Result<(), Fault> {
        let path = self.folder.join("crl.pem");
        if is_named(&path) {
            let text = read_file(&path)?;
            let authority = &self.identity_authority.certificate;
            let list = RevocationList::from_pem(&shown(&path), &text, authority)?;
            self.identity_authority.revoked = Some(list);
        }
        Ok(())
    }

    /// What its participants may do in a domain.
    pub fn access(&self, domain: u32) -> Result<Access, Fault> {
        let leaf = self.identity.chain.first();
        let subject = leaf.map(Certificate::subject).ok_or_else(|| {
            let file = shown(&self.folder);
            Fault::new(file, "certificate", "", "there is none", "add a cert.pem")
        })?;
        Access::new(&self.governance, &self.permissions, subject, domain)
    }
}

/// What reading an enclave's files again has led to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// The participant proves itself with another certificate, or may do other
    /// things: peers have to hear of it.
    pub is_news: bool,
    /// What has changed and is as it was before here.
    pub kept: Vec<Fault>,
}

impl Enclave {
    /// Reads the files again and takes up what may change while a participant
    /// lives: certificate and key of the same subject, its permissions, and the
    /// revocation list. Governance and authorities stay as they are. Blocks as
    /// long as reading and checking takes, milliseconds.
    ///
    /// # Errors
    /// What is wrong with the files, or needs another participant; all stays as it
    /// was then.
    pub fn renew(&mut self, now: UnixTime) -> Result<Renewal, Vec<Fault>> {
        let new = Self::load(&self.folder, now)?;
        let restart = |file: &str, field: &str, reason: &str| {
            let file = shown(&self.folder.join(file));
            let remedy =
                "restart what runs with this enclave; until then what was read before holds";
            Fault::new(file, field, "", reason, remedy)
        };
        let mut faults = Vec::new();
        if new.identity_authority.certificate != self.identity_authority.certificate {
            faults.push(restart("identity_ca.cert.pem", "certificate", OTHER));
        }
        if new.permissions_authority != self.permissions_authority {
            faults.push(restart("permissions_ca.cert.pem", "certificate", OTHER));
        }
        let subject = |enclave: &Self| {
            let leaf = enclave.identity.chain.first();
            leaf.map(|leaf| leaf.subject().clone())
        };
        let own = subject(self);
        if own != subject(&new) {
            let why = "is of another subject, of which the participant's GUID is made";
            faults.push(restart("cert.pem", "certificate", why));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut renewal = Renewal::default();
        if new.governance.rules != self.governance.rules {
            let fault = restart("governance.p7s", "<domain_access_rules>", OTHER);
            renewal.kept.push(fault);
        }
        let grant = |enclave: &Self| enclave.permissions.grant(own.as_ref()?).cloned();
        renewal.is_news = grant(self) != grant(&new) || self.identity.chain != new.identity.chain;
        self.identity = new.identity;
        self.permissions = new.permissions;
        self.permissions_file = new.permissions_file;
        if new.identity_authority.revoked.is_some() {
            self.identity_authority.revoked = new.identity_authority.revoked;
        }
        Ok(renewal)
    }
}

/// An enclave on its way: faults are gathered, so that all are told at once.
struct Loading<'a> {
    folder: &'a Path,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl Loading<'_> {
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
                "one CA for identities and permissions; whoever gets its key may do everything",
                "make keystores with `pteros security create_keystore`, which makes two",
            );
        }
        let governance = permissions_ca
            .as_ref()
            .and_then(|ca| self.signed("governance.p7s", ca, now))
            .and_then(|(file, document, _)| self.keep(Governance::read(document.source(&file))));
        let permissions = permissions_ca
            .as_ref()
            .and_then(|ca| self.signed("permissions.p7s", ca, now))
            .and_then(|(file, document, bytes)| {
                let read = self.keep(Permissions::read(document.source(&file)));
                read.map(|permissions| (permissions, bytes))
            });
        let authority = Authority {
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
        let certificates = self.keep(Certificate::from_pem(&file, &text))?;
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
        if let Some(reason) = authority.validity().refusal(now) {
            // Nothing that it has signed holds, either.
            self.fault(
                name,
                "certificate",
                reason,
                "set the clock, if it is wrong; else all that run with this keystore need a new \
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
        self.keep(RevocationList::from_pem(&file, &text, authority))
    }

    fn identity(&mut self) -> Option<Identity> {
        let certificates = self
            .file("cert.pem")
            .and_then(|(file, text)| self.keep(Certificate::from_pem(&file, &text)));
        let key = self
            .file("key.pem")
            .and_then(|(file, text)| self.keep(PrivateKey::from_pem(&file, &text)));
        self.look_at_mode("key.pem");
        let (chain, key) = (certificates?, key?);
        let own = chain.first()?;
        if *own.key() != key.public_key() {
            self.fault(
                "key.pem",
                "private key",
                "does not belong to the certificate in cert.pem",
                "copy both files again, or make them anew with `pteros security create_enclave`",
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
        let document = self.keep(SignedDocument::read(&file, &bytes, authority, now))?;
        Some((file, document, bytes))
    }

    fn admit(&mut self, authority: &Authority, identity: &Identity, now: UnixTime) {
        if let Err(refusal) = authority.admit(&identity.chain, now) {
            let (name, field, remedy) = match &refusal {
                Refusal::OutdatedList { .. } => (
                    "crl.pem",
                    "revocation list",
                    "get the latest one; `pteros security revoke` makes one",
                ),
                _ => (
                    "cert.pem",
                    "certificate",
                    "make a new one with `pteros security create_enclave`",
                ),
            };
            self.fault(name, field, refusal.to_string(), remedy);
            return;
        }
        let ends = identity.chain.iter().map(|one| one.validity().not_after);
        if let Some(end) = ends.min()
            && end < now.after_days(SOON_DAYS)
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
                "make it anew with `pteros security create_permission`",
            );
            return;
        };
        if let Some(refusal) = grant.validity.refusal(now) {
            let fault = Fault::new(
                shown(&self.folder.join("permissions.p7s")),
                "<validity>",
                &grant.name,
                refusal,
                "make it anew with `pteros security create_permission`",
            );
            self.faults.push(fault.at_line(grant.line));
        } else if grant.validity.not_after < now.after_days(SOON_DAYS) {
            self.warn(
                "permissions.p7s",
                "<validity>",
                format!("expires soon, at {}", grant.validity.not_after),
                "renew it with `pteros security create_permission`",
            );
        }
    }

    /// The name and content of a file of the enclave.
    fn file(&mut self, name: &str) -> Option<(String, Vec<u8>)> {
        let path = self.folder.join(name);
        let token = path.with_extension("p11");
        if !path.exists() && token.exists() {
            let reason = "names an object on a PKCS#11 token, and those are not read here";
            let remedy = format!("put what it names beside it as {name}, as PEM");
            let field = "PKCS#11";
            let fault = Fault::new(shown(&token), field, "", reason, remedy);
            self.faults.push(fault);
            return None;
        }
        let content = read_file(&path);
        let content = self.keep(content)?;
        Some((shown(&path), content))
    }

    /// Whoever reads a private key is its owner.
    fn look_at_mode(&mut self, name: &str) {
        let Ok(about) = fs::metadata(self.folder.join(name)) else {
            return;
        };
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            self.warn(
                name,
                "mode",
                format!("{mode:04o}: others than its owner may read or change it"),
                "chmod 600",
            );
        }
    }

    fn keep<T>(&mut self, read: Result<T, Fault>) -> Option<T> {
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn fault(&mut self, name: &str, field: &str, reason: impl Into<String>, remedy: &str) {
        let file = shown(&self.folder.join(name));
        self.faults
            .push(Fault::new(file, field, "", reason, remedy));
    }

    fn warn(&mut self, name: &str, field: &str, reason: impl Into<String>, remedy: &str) {
        let file = shown(&self.folder.join(name));
        self.warnings
            .push(Fault::new(file, field, "", reason, remedy));
    }
}

/// Whether a context that asks for this enclave may do without, where it is allowed
/// to: if there is none, and not where it cannot be looked at.
pub fn is_missing(folder: &Path) -> bool {
    fs::metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn look_at_folder(folder: &Path) -> Result<(), Fault> {
    let another = "name another one with ROS_SECURITY_ENCLAVE_OVERRIDE or --enclave, or make it \
                   with `pteros security create_enclave`";
    let (reason, remedy) = match fs::metadata(folder) {
        Ok(about) if about.is_dir() => return Ok(()),
        Ok(_) => ("is no folder".into(), another),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            ("there is no such folder".into(), another)
        }
        Err(error) => (format!("cannot be looked at: {error}"), OWNER),
    };
    Err(Fault::new(shown(folder), "enclave", "", reason, remedy))
}

/// Whether there is a file or a link of this name, even if it leads nowhere or may
/// not be looked at: whoever put it there relies on it.
fn is_named(path: &Path) -> bool {
    let about = fs::symlink_metadata(path);
    !about.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// A file of a keystore, which has a limit. What is something else among the names, a
/// pipe or a device, would not end.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Fault> {
    let fault = |reason: String, remedy: &str| Fault::new(shown(path), "file", "", reason, remedy);
    let put = "copy it there, or make it with `pteros security`";
    let failed = |error: std::io::Error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => OWNER,
            _ => put,
        };
        fault(format!("cannot be read: {error}"), remedy)
    };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(fault("something else has this name".into(), put));
    }
    let mut content = Vec::new();
    let opened = fs::File::open(path);
    opened
        .and_then(|file| {
            file.take(FILE_BYTES.saturating_add(1))
                .read_to_end(&mut content)
        })
        .map_err(failed)?;
    if content.len() as u64 > FILE_BYTES {
        let reason = format!("larger than {FILE_BYTES} bytes");
        return Err(fault(reason, "is it the right file?"));
    }
    Ok(content)
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

const OWNER: &str = "run as the user whose file it is, or let this user read it";
const OTHER: &str = "is another one than was read before";
/// What ends within this many days is worth a warning.
const SOON_DAYS: u32 = 30;
const FILE_BYTES: u64 = 4 << 20;
