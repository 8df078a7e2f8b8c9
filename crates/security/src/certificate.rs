//! X.509 certificates and revocation lists. Signatures are checked over the
//! received bytes. Certificates of versions 1 and 3 are read, because
//! `openssl x509 -req` writes version 1 by default.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use der::asn1::{BitString, ObjectIdentifier};
use der::{Decode, Encode, Reader, SliceReader};
use x509_cert::crl::CertificateList;
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, SubjectKeyIdentifier};
use x509_cert::name::Name;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::Time;

use crate::date::{UnixTime, Validity};
use crate::diagnostic::Diagnostic;
use crate::key::{PublicKey, Scheme};
use crate::pem;
use crate::subject::SubjectName;

/// An X.509 certificate, kept as DER.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    signed: Signed,
    issuer: Name,
    serial: Vec<u8>,
    subject_name: Name,
    subject: SubjectName,
    validity: Validity,
    key: PublicKey,
    key_identifier: Option<Vec<u8>>,
    /// From basicConstraints; `None` in version 1.
    may_issue: Option<bool>,
    may_sign_certificates: Option<bool>,
    may_sign: Option<bool>,
}

/// The signed part of a certificate or list.
#[derive(Clone, PartialEq, Eq)]
struct Signed {
    bytes: Vec<u8>,
    algorithm: ObjectIdentifier,
    signature: Vec<u8>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({}, serial {})", self.subject, self.serial())
    }
}

impl Certificate {
    /// The certificates of a PEM file, at least one and at most eight.
    pub fn from_pem(file: &str, text: &[u8]) -> Result<Vec<Self>, Diagnostic> {
        let fault =
            |reason: &str, remedy: &str| Diagnostic::new(file, "certificate", "", reason, remedy);
        if text.starts_with(b"pkcs11:") {
            return Err(fault(
                "certificates on PKCS#11 tokens cannot be used here",
                "give the enclave a cert.pem",
            ));
        }
        let blocks = pem::blocks(file, text)?;
        let certificates = blocks
            .iter()
            .filter(|block| {
                ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]
                    .contains(&block.label.as_str())
            })
            .map(|block| {
                Self::from_der(&block.der)
                    .map_err(|reason| fault(&reason, "create a new one: `pteros security`"))
            })
            .take(CERTIFICATES.saturating_add(1))
            .collect::<Result<Vec<_>, _>>()?;
        match certificates.len() {
            0 => Err(fault("there is none in the file", "is it the right file?")),
            1..=CERTIFICATES => Ok(certificates),
            _ => Err(fault(
                "a chain of more than eight certificates",
                "remove those that are not needed",
            )),
        }
    }

    /// Decodes one certificate; the error is the reason.
    pub fn from_der(der: &[u8]) -> Result<Self, String> {
        let malformed = |error: der::Error| format!("malformed: {error}");
        let parsed = x509_cert::Certificate::from_der(der).map_err(malformed)?;
        let tbs = &parsed.tbs_certificate;
        let extensions = tbs.extensions.as_ref();
        let info = &tbs.subject_public_key_info;
        let curve = info
            .algorithm
            .parameters
            .as_ref()
            .and_then(|parameters| parameters.decode_as::<ObjectIdentifier>().ok());
        let usage = extension::<KeyUsage>(extensions, "2.5.29.15")?;
        let constraints = extension::<BasicConstraints>(extensions, "2.5.29.19")?;
        let identifier = extension::<SubjectKeyIdentifier>(extensions, "2.5.29.14")?;
        for extension in extensions.into_iter().flatten() {
            let known = [
                "2.5.29.15",
                "2.5.29.19",
                "2.5.29.14",
                "2.5.29.37",
                "2.5.29.17",
            ];
            let oid = extension.extn_id.to_string();
            if extension.critical && !known.contains(&oid.as_str()) {
                return Err(format!("has a critical extension unknown here: {oid}"));
            }
        }
        Ok(Self {
            der: der.to_vec(),
            signed: Signed {
                bytes: first_of(der).map_err(malformed)?,
                algorithm: algorithm(&tbs.signature, &parsed.signature_algorithm)?,
                signature: whole_bytes(&parsed.signature)?,
            },
            issuer: tbs.issuer.clone(),
            serial: tbs.serial_number.as_bytes().to_vec(),
            subject: SubjectName::of(&tbs.subject),
            subject_name: tbs.subject.clone(),
            validity: Validity {
                not_before: unix(tbs.validity.not_before),
                not_after: unix(tbs.validity.not_after),
            },
            key: PublicKey::new(
                &info.algorithm.oid,
                curve,
                &whole_bytes(&info.subject_public_key)?,
            )?,
            key_identifier: identifier.map(|id| id.0.as_bytes().to_vec()),
            may_issue: constraints.map(|constraints| constraints.ca),
            may_sign_certificates: usage.as_ref().map(KeyUsage::key_cert_sign),
            may_sign: usage.as_ref().map(KeyUsage::digital_signature),
        })
    }

    /// The received DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// One block CERTIFICATE, in lines of 64 characters.
    pub fn to_pem(&self) -> String {
        pem::encode("CERTIFICATE", &self.der)
    }

    /// The distinguished name of its owner.
    pub fn subject(&self) -> &SubjectName {
        &self.subject
    }

    /// SHA-256 of the subject name in DER, from which the participant GUID is made
    /// (DDS Security 1.1 §9.3.3).
    pub fn subject_hash(&self) -> [u8; 32] {
        let der = self.subject_name.to_der().unwrap_or_default();
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, &der).as_ref());
        hash
    }

    /// The serial number in hexadecimal.
    pub fn serial(&self) -> String {
        self.serial
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The validity period.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// The public key.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Whether the owner may issue certificates, from its extensions; `None` in
    /// version 1.
    pub fn may_issue(&self) -> Option<bool> {
        match (self.may_issue, self.may_sign_certificates) {
            (None, None) => None,
            (issue, sign) => Some(issue.unwrap_or(true) && sign.unwrap_or(true)),
        }
    }

    /// Whether the owner may sign: keyUsage, true without it.
    pub fn may_sign(&self) -> bool {
        self.may_sign.unwrap_or(true)
    }

    /// Whether `issuer` signed it; the error is the reason.
    pub fn is_signed_by(&self, issuer: &Certificate) -> Result<(), String> {
        if self.issuer != issuer.subject_name {
            return Err(format!(
                "it was issued by '{}', not by '{}'",
                SubjectName::of(&self.issuer),
                issuer.subject
            ));
        }
        self.signed.verify(issuer)
    }

    pub(crate) fn subject_name(&self) -> &Name {
        &self.subject_name
    }

    pub(crate) fn issuer_name(&self) -> &Name {
        &self.issuer
    }

    pub(crate) fn serial_bytes(&self) -> &[u8] {
        &self.serial
    }

    pub(crate) fn key_identifier(&self) -> Option<&[u8]> {
        self.key_identifier.as_deref()
    }
}

impl Signed {
    fn verify(&self, issuer: &Certificate) -> Result<(), String> {
        let scheme = Scheme::of(&self.algorithm)?;
        let signed = issuer.key.verifies(scheme, &self.bytes, &self.signature);
        signed.then_some(()).ok_or_else(|| {
            format!(
                "the signature is not by the key of '{}', though the issuer field names it",
                issuer.subject
            )
        })
    }
}

/// Certificate revocation list (CRL): serial numbers that an authority has revoked.
#[derive(Clone)]
pub struct RevocationList {
    signed: Signed,
    issuer: Name,
    revoked: Vec<(Vec<u8>, UnixTime)>,
    next_update: Option<UnixTime>,
}

impl fmt::Debug for RevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RevocationList({} revoked)", self.revoked.len())
    }
}

impl RevocationList {
    /// How many certificates it names.
    pub fn count(&self) -> usize {
        self.revoked.len()
    }

    /// Reads a PEM file with one list that `authority` signed.
    pub fn from_pem(file: &str, text: &[u8], authority: &Certificate) -> Result<Self, Diagnostic> {
        let fault = |reason: String| {
            let remedy = "create a new one with `pteros security revoke`, or remove it";
            Diagnostic::new(file, "revocation list", "", reason, remedy)
        };
        let blocks = pem::blocks(file, text)?;
        let mut lists = blocks.iter().filter(|block| block.label == "X509 CRL");
        let (Some(block), None) = (lists.next(), lists.next()) else {
            return Err(fault("the file does not have exactly one".into()));
        };
        let list = Self::from_der(&block.der).map_err(fault)?;
        if list.issuer != authority.subject_name {
            return Err(fault(format!(
                "it is signed by '{}', not by '{}'",
                SubjectName::of(&list.issuer),
                authority.subject
            )));
        }
        list.signed.verify(authority).map_err(fault)?;
        Ok(list)
    }

    fn from_der(der: &[u8]) -> Result<Self, String> {
        let malformed = |error: der::Error| format!("malformed: {error}");
        if has_no_version(der) {
            let reason =
                "it has version 1, and version 2 is required: with OpenSSL, set crl_extensions";
            return Err(reason.into());
        }
        let parsed = CertificateList::from_der(der).map_err(malformed)?;
        let list = parsed.tbs_cert_list;
        let mut extensions = list.crl_extensions.iter().flatten();
        if let Some(critical) = extensions.find(|extension| extension.critical) {
            let oid = critical.extn_id;
            return Err(format!("has a critical extension unknown here: {oid}"));
        }
        Ok(Self {
            signed: Signed {
                bytes: first_of(der).map_err(malformed)?,
                algorithm: algorithm(&list.signature, &parsed.signature_algorithm)?,
                signature: whole_bytes(&parsed.signature)?,
            },
            issuer: list.issuer,
            revoked: list
                .revoked_certificates
                .into_iter()
                .flatten()
                .map(|entry| {
                    let serial = entry.serial_number.as_bytes().to_vec();
                    (serial, unix(entry.revocation_date))
                })
                .collect(),
            next_update: list.next_update.map(unix),
        })
    }

    /// When this certificate was revoked; `None` if it was not.
    pub fn revoked(&self, certificate: &Certificate) -> Option<UnixTime> {
        let mut entries = self.revoked.iter();
        let entry = entries.find(|(serial, _)| *serial == certificate.serial)?;
        Some(entry.1)
    }

    /// Serial numbers and their revocation times.
    pub(crate) fn entries(&self) -> &[(Vec<u8>, UnixTime)] {
        &self.revoked
    }

    /// When a newer list was due, if that time is past.
    pub fn is_outdated(&self, now: UnixTime) -> Option<UnixTime> {
        self.next_update.filter(|next| *next < now)
    }
}

/// Whether a revocation list begins with its algorithm. Then it has version 1,
/// which OpenSSL writes by default and which has no version field.
fn has_no_version(der: &[u8]) -> bool {
    let within = |der: &[u8]| first_of(der).ok();
    let list = within(der);
    let first = list.as_deref().and_then(within);
    first.is_some_and(|first| first.first() == Some(&0x30))
}

fn extension<T: for<'a> Decode<'a>>(
    extensions: Option<&Extensions>,
    oid: &str,
) -> Result<Option<T>, String> {
    let mut found = extensions
        .into_iter()
        .flatten()
        .filter(|extension| extension.extn_id.to_string() == oid);
    let Some(first) = found.next() else {
        return Ok(None);
    };
    if found.next().is_some() {
        return Err(format!("has the extension {oid} twice"));
    }
    T::from_der(first.extn_value.as_bytes())
        .map(Some)
        .map_err(|error| format!("the extension {oid} is malformed: {error}"))
}

/// The algorithm, which is given twice, inside and outside the signed part, and
/// must be equal (RFC 5280 §4.1.1.2).
fn algorithm(
    signed: &AlgorithmIdentifierOwned,
    beside: &AlgorithmIdentifierOwned,
) -> Result<ObjectIdentifier, String> {
    (signed == beside)
        .then_some(signed.oid)
        .ok_or_else(|| "names two different signature algorithms".into())
}

fn whole_bytes(bits: &BitString) -> Result<Vec<u8>, String> {
    bits.as_bytes()
        .map(<[u8]>::to_vec)
        .ok_or_else(|| "malformed: a bit string that is not whole bytes".into())
}

/// The first element of a SEQUENCE as received: the signed part.
fn first_of(der: &[u8]) -> der::Result<Vec<u8>> {
    let mut outer = SliceReader::new(der)?;
    let header = der::Header::decode(&mut outer)?;
    let content = outer.read_slice(header.length)?;
    SliceReader::new(content)?.tlv_bytes().map(<[u8]>::to_vec)
}

fn unix(time: Time) -> UnixTime {
    let seconds = time.to_unix_duration().as_secs();
    UnixTime(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// Limit of certificates in a file, or in a peer's chain.
const CERTIFICATES: usize = 8;
