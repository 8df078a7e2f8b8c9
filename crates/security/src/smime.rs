//! Signed governance and permissions: S/MIME multipart/signed with a detached
//! PKCS#7 signature (DDS Security 1.1 §9.4.1.1), as OpenSSL and SROS 2 write it.
//!
//! The signer must be the permissions CA itself. Certificates within the signature
//! are ignored: a file with its own signer, even one that the CA certified, proves
//! nothing (CVE-2023-24010).

use aws_lc_rs::digest::{SHA256, digest};
use base64ct::{Base64, Encoding};
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use der::asn1::{ObjectIdentifier, OctetString, OctetStringRef, SetOfVec};
use der::{Any, Decode, Encode};
use x509_cert::attr::Attribute;
use x509_cert::spki::AlgorithmIdentifierOwned;

use crate::certificate::Certificate;
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::document::DocumentSource;
use crate::issue::x509_time;
use crate::key::{KeyKind, PrivateKey, RSA_ENCRYPTION, RandomnessFailed, Scheme};
use crate::pem::wrapped;

/// A document with a valid signature.
#[derive(Debug, Clone)]
pub struct SignedDocument {
    text: String,
    first_line: u32,
}

impl SignedDocument {
    /// Reads the document of a signed file. `authority` must have signed it, and
    /// must be valid at `now`.
    pub fn read(
        file: &str,
        content: &[u8],
        authority: &Certificate,
        now: UnixTime,
    ) -> Result<Self, Diagnostic> {
        let fault = |reason: String| {
            let remedy =
                "sign the document again with the permissions CA: `pteros security sign KEYSTORE`";
            Diagnostic::new(file, "signature", "", reason, remedy)
        };
        let parts = SignedParts::of(content).map_err(fault)?;
        let signed = canonical(parts.signed);
        verify(&signed, &parts.signature, authority).map_err(fault)?;
        if let Some(reason) = authority.validity().rejection(now) {
            let signer = authority.subject();
            return Err(fault(format!("the signer '{signer}' is {reason}")));
        }
        let text = String::from_utf8(signed).map_err(|_| fault("it is not UTF-8".into()))?;
        let (text, header_lines) = without_headers(&text);
        Ok(Self {
            text: text.into(),
            first_line: parts.first_line.saturating_add(header_lines),
        })
    }

    /// The document, for reading.
    pub fn source<'a>(&'a self, file: &'a str) -> DocumentSource<'a> {
        DocumentSource {
            file,
            first_line: self.first_line,
            text: &self.text,
        }
    }
}

/// The parts of a multipart/signed message.
struct SignedParts<'a> {
    /// The signed part, as in the file.
    signed: &'a [u8],
    /// Its first line in the file, from 1.
    first_line: u32,
    /// The PKCS#7 message.
    signature: Vec<u8>,
}

impl<'a> SignedParts<'a> {
    fn of(content: &'a [u8]) -> Result<Self, String> {
        if content.len() > FILE_BYTES_MAX {
            return Err(format!("the file is larger than {FILE_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(content).map_err(|_| "the file is not text".to_owned())?;
        if text.trim_start().starts_with('<') {
            return Err("the file is not signed; it is the bare document".into());
        }
        let (headers, _) = headers_of(text);
        let kind = header(&headers, "content-type").ok_or("the file is not an S/MIME message")?;
        if kind.to_ascii_lowercase().starts_with("application/") {
            return Err("the signature is not detached; sign without -nodetach".into());
        }
        if !kind.to_ascii_lowercase().starts_with("multipart/signed") {
            return Err(format!("the file is '{kind}', not multipart/signed"));
        }
        let boundary = kind
            .split_once("boundary=")
            .map(|(_, value)| match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([';', ' ']).next(),
            })
            .and_then(|boundary| boundary.filter(|boundary| !boundary.is_empty()))
            .ok_or("the message names no boundary")?;
        let delimiter = format!("--{boundary}");
        let mut marks = lines(text).filter(|(_, _, line)| {
            line.strip_prefix(delimiter.as_str())
                .is_some_and(|rest| rest.is_empty() || rest == "--")
        });
        let (first, second, third) = (marks.next(), marks.next(), marks.next());
        let (Some(first), Some(second), Some(third)) = (first, second, third) else {
            return Err("the message is cut short: it has not both its parts".into());
        };
        let part = |from: (u32, usize, &str), to: (u32, usize, &str)| {
            let start = text.get(from.1..).and_then(|rest| rest.find('\n'))?;
            let start = from.1.saturating_add(start).saturating_add(1);
            let part = text.get(start..to.1).unwrap_or_default();
            let part = part.strip_suffix('\n').unwrap_or(part);
            Some(part.strip_suffix('\r').unwrap_or(part))
        };
        let signed = part(first, second).ok_or("the signed part is missing")?;
        let signature = part(second, third).ok_or("the signature is missing")?;
        let (headers, body) = headers_of(signature);
        let kind = header(&headers, "content-type").unwrap_or_default();
        if !kind.to_ascii_lowercase().contains("pkcs7-signature") {
            return Err(format!(
                "its second part is '{kind}', not a PKCS#7 signature"
            ));
        }
        let base64: String = body.split_ascii_whitespace().collect();
        let signature =
            Base64::decode_vec(&base64).map_err(|_| "the signature is not base64".to_owned())?;
        Ok(Self {
            signed: signed.as_bytes(),
            first_line: first.0.saturating_add(1),
            signature,
        })
    }
}

/// Lines with their numbers from 1 and their offsets, without line ends.
fn lines(text: &str) -> impl Iterator<Item = (u32, usize, &str)> {
    let mut at = 0_usize;
    text.split_inclusive('\n')
        .zip(1_u32..)
        .map(move |(line, number)| {
            let start = at;
            at = at.saturating_add(line.len());
            (number, start, line.trim_end())
        })
}

/// MIME headers with their continuations, and the text after the empty line.
fn headers_of(text: &str) -> (Vec<String>, &str) {
    let mut headers: Vec<String> = Vec::new();
    for (_, start, line) in lines(text) {
        if line.is_empty() {
            let body = text.get(start..).unwrap_or_default();
            return (headers, body);
        }
        match headers.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => headers.push(line.into()),
        }
    }
    (headers, "")
}

fn header(headers: &[String], name: &str) -> Option<String> {
    let fields = headers.iter().filter_map(|header| header.split_once(':'));
    let mut named = fields.filter(|(field, _)| field.trim().eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().into())
}

/// With CRLF line ends, as it is signed.
fn canonical(part: &[u8]) -> Vec<u8> {
    let mut signed = Vec::with_capacity(part.len().saturating_add(part.len() / 16));
    for (index, line) in part.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            signed.extend(b"\r\n");
        }
        let end = line.iter().rposition(|byte| *byte != b'\r');
        signed.extend(line.iter().take(end.map_or(0, |end| end.saturating_add(1))));
    }
    signed
}

/// The document without the headers of its part, and the number of lines that these
/// take. Without `-text` OpenSSL writes none.
fn without_headers(text: &str) -> (&str, u32) {
    let begins = text.get(.."content-type:".len()).unwrap_or_default();
    if !begins.eq_ignore_ascii_case("content-type:") {
        return (text, 0);
    }
    match text.split_once("\r\n\r\n") {
        Some((headers, document)) => {
            let lines = headers.matches('\n').count().saturating_add(2);
            (document, u32::try_from(lines).unwrap_or(u32::MAX))
        }
        None => ("", 0),
    }
}

fn verify(signed: &[u8], signature: &[u8], authority: &Certificate) -> Result<(), String> {
    let malformed = |error: der::Error| format!("the signature is malformed: {error}");
    let content = ContentInfo::from_der(signature).map_err(malformed)?;
    if content.content_type.to_string() != SIGNED_DATA {
        return Err("the signature is not PKCS#7 SignedData".into());
    }
    let data: SignedData = content.content.decode_as().map_err(malformed)?;
    if data.encap_content_info.econtent.is_some() {
        return Err("the signature is not detached".into());
    }
    let signers = data.signer_infos.0.as_slice();
    let [signer] = signers else {
        return Err(format!(
            "{} signers; exactly one is expected",
            signers.len()
        ));
    };
    if !is_by(&signer.sid, authority)? {
        return Err(format!(
            "it was not signed by the permissions CA, '{}' with serial {}",
            authority.subject(),
            authority.serial()
        ));
    }
    if signer.digest_alg.oid.to_string() != SHA_256 {
        return Err(format!(
            "it is signed over the digest {}; SHA-256 is required",
            signer.digest_alg.oid
        ));
    }
    let oid = &signer.signature_algorithm.oid;
    let scheme = match oid.to_string().as_str() {
        RSA_ENCRYPTION => Scheme::RsaPkcs1Sha256,
        _ => Scheme::of(oid)?,
    };
    let verifies = |message: &[u8]| {
        let signature = signer.signature.as_bytes();
        let good = authority.key().verifies(scheme, message, signature);
        good.then_some(()).ok_or_else(|| {
            "the signature is not by the key of the permissions CA, or was changed".to_owned()
        })
    };
    let Some(attributes) = &signer.signed_attrs else {
        return verifies(signed);
    };
    let value = |oid: &str| -> Result<&Any, String> {
        let attributes = attributes.iter();
        let mut named = attributes.filter(|attribute| attribute.oid.to_string() == oid);
        let (Some(attribute), None) = (named.next(), named.next()) else {
            return Err(format!("it has not exactly one attribute {oid}"));
        };
        let [value] = attribute.values.as_slice() else {
            return Err(format!("its attribute {oid} has not exactly one value"));
        };
        Ok(value)
    };
    let kind: ObjectIdentifier = value(CONTENT_TYPE)?.decode_as().map_err(malformed)?;
    if kind.to_string() != DATA {
        return Err(format!("it signs content of the type {kind}, not data"));
    }
    let stated: OctetString = value(MESSAGE_DIGEST)?.decode_as().map_err(malformed)?;
    if stated.as_bytes() != digest(&SHA256, signed).as_ref() {
        return Err("the document was changed after it was signed".into());
    }
    verifies(&attributes.to_der().map_err(malformed)?)
}

/// Whether the signer's name is that of the certificate.
fn is_by(signer: &SignerIdentifier, authority: &Certificate) -> Result<bool, String> {
    Ok(match signer {
        SignerIdentifier::IssuerAndSerialNumber(id) => {
            id.issuer == *authority.issuer_name()
                && id.serial_number.as_bytes() == authority.serial_bytes()
        }
        SignerIdentifier::SubjectKeyIdentifier(id) => authority
            .key_identifier()
            .is_some_and(|own| own == id.0.as_bytes()),
    })
}

/// Signs a document as `authority`, whose private key this is: the content of
/// a `.p7s` file.
pub fn sign(
    document: &str,
    authority: &Certificate,
    key: &PrivateKey,
    now: UnixTime,
) -> Result<String, SignError> {
    let part = format!("Content-Type: text/plain\n\n{document}");
    let signed = canonical(part.as_bytes());
    let hash = digest(&SHA256, &signed);
    let boundary: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let boundary = format!("----{boundary}");
    let signature = signature_of(hash.as_ref(), authority, key, now)?;
    let base64 = wrapped(&Base64::encode_string(&signature));
    Ok(format!(
        "MIME-Version: 1.0\n\
         Content-Type: multipart/signed; protocol=\"application/x-pkcs7-signature\"; \
         micalg=\"sha-256\"; boundary=\"{boundary}\"\n\n\
         This is an S/MIME signed message\n\n\
         --{boundary}\n\
         {part}\n\
         --{boundary}\n\
         Content-Type: application/x-pkcs7-signature; name=\"smime.p7s\"\n\
         Content-Transfer-Encoding: base64\n\
         Content-Disposition: attachment; filename=\"smime.p7s\"\n\n\
         {base64}\n\
         --{boundary}--\n\n"
    ))
}

/// Why signing failed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessFailed),
    /// A name or date that DER cannot represent.
    #[error("cannot be written as DER: {0}")]
    Encoding(#[from] der::Error),
}

fn signature_of(
    hash: &[u8],
    authority: &Certificate,
    key: &PrivateKey,
    now: UnixTime,
) -> Result<Vec<u8>, SignError> {
    let attribute = |oid: &str, value: Any| -> der::Result<Attribute> {
        Ok(Attribute {
            oid: ObjectIdentifier::new(oid)?,
            values: SetOfVec::try_from(vec![value])?,
        })
    };
    let sha256 = AlgorithmIdentifierOwned {
        oid: ObjectIdentifier::new(SHA_256).map_err(der::Error::from)?,
        parameters: None,
    };
    let data = ObjectIdentifier::new(DATA).map_err(der::Error::from)?;
    let attributes = SetOfVec::try_from(vec![
        attribute(CONTENT_TYPE, Any::encode_from(&data)?)?,
        attribute(SIGNING_TIME, Any::encode_from(&x509_time(now)?)?)?,
        attribute(
            MESSAGE_DIGEST,
            Any::encode_from(&OctetStringRef::new(hash)?)?,
        )?,
    ])?;
    let signature = key.sign(&attributes.to_der()?)?;
    let certificate = x509_cert::Certificate::from_der(authority.der())?;
    let (algorithm, parameters) = match key.kind() {
        KeyKind::EcP256 => (key.scheme_oid(), None),
        KeyKind::Rsa => (RSA_ENCRYPTION, Some(Any::null())),
    };
    let signer = SignerInfo {
        version: CmsVersion::V1,
        sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: certificate.tbs_certificate.issuer.clone(),
            serial_number: certificate.tbs_certificate.serial_number.clone(),
        }),
        digest_alg: sha256.clone(),
        signed_attrs: Some(attributes),
        signature_algorithm: AlgorithmIdentifierOwned {
            oid: ObjectIdentifier::new(algorithm).map_err(der::Error::from)?,
            parameters,
        },
        signature: OctetString::new(signature)?,
        unsigned_attrs: None,
    };
    let certificates = SetOfVec::try_from(vec![CertificateChoices::Certificate(certificate)])?;
    let signed = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::try_from(vec![sha256])?,
        encap_content_info: EncapsulatedContentInfo {
            econtent_type: data,
            econtent: None,
        },
        certificates: Some(CertificateSet(certificates)),
        crls: None,
        signer_infos: SignerInfos(SetOfVec::try_from(vec![signer])?),
    };
    let content = ContentInfo {
        content_type: ObjectIdentifier::new(SIGNED_DATA).map_err(der::Error::from)?,
        content: Any::encode_from(&signed)?,
    };
    Ok(content.to_der()?)
}

const DATA: &str = "1.2.840.113549.1.7.1";
const SIGNED_DATA: &str = "1.2.840.113549.1.7.2";
const CONTENT_TYPE: &str = "1.2.840.113549.1.9.3";
const MESSAGE_DIGEST: &str = "1.2.840.113549.1.9.4";
const SIGNING_TIME: &str = "1.2.840.113549.1.9.5";
const SHA_256: &str = "2.16.840.1.101.3.4.2.1";
/// Twice the largest document, to include base64 and headers.
const FILE_BYTES_MAX: usize = 2 << 20;
