//! Issues certificates and revocation lists: X.509 version 3 with the fields of
//! SROS 2, and also key usages and identifiers.

use aws_lc_rs::digest::{SHA256, digest};
use der::asn1::{BitString, GeneralizedTime, ObjectIdentifier, OctetString, UtcTime};
use der::flagset::FlagSet;
use der::{Any, DateTime, Encode};
use x509_cert::crl::{CertificateList, RevokedCert, TbsCertList};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, CrlNumber, KeyUsage, KeyUsages, SubjectKeyIdentifier,
};
use x509_cert::name::{Name, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity as X509Validity};
use x509_cert::{TbsCertificate, Version};

use crate::certificate::{Certificate, RevocationList};
use crate::date::{UnixTime, Validity};
use crate::key::RandomnessFailed;
use crate::key::{EC_PUBLIC_KEY, KeyKind, PRIME256V1, PrivateKey, PublicKey, RSA_ENCRYPTION};
use crate::pem;
use crate::smime::SignError;

/// Creates an authority: its self-signed certificate for `key`.
pub fn authority(
    common_name: &str,
    key: &PrivateKey,
    validity: Validity,
) -> Result<Certificate, SignError> {
    let subject = name(common_name)?;
    issue(&subject, &key.public_key(), &subject, key, validity, true)
}

/// Issues a certificate for `public_key`, signed by `authority` with its private
/// key `key`.
pub fn identity(
    common_name: &str,
    public_key: &PublicKey,
    authority: &Certificate,
    key: &PrivateKey,
    validity: Validity,
) -> Result<Certificate, SignError> {
    let subject = name(common_name)?;
    issue(
        &subject,
        public_key,
        authority.subject_name(),
        key,
        validity,
        false,
    )
}

/// Issues a revocation list in PEM: the entries of `former`, and these
/// certificates.
pub fn revocation_list(
    former: Option<&RevocationList>,
    revoked: &[Certificate],
    authority: &Certificate,
    key: &PrivateKey,
    validity: Validity,
) -> Result<String, SignError> {
    let now = validity.not_before;
    let entries = former.map(RevocationList::entries).unwrap_or_default();
    let mut entries = entries.to_vec();
    for certificate in revoked {
        let serial = certificate.serial_bytes();
        if !entries.iter().any(|(known, _)| known == serial) {
            entries.push((serial.to_vec(), now));
        }
    }
    let entries = entries
        .into_iter()
        .map(|(serial, at)| {
            Ok(RevokedCert {
                serial_number: SerialNumber::new(&serial)?,
                revocation_date: x509_time(at)?,
                crl_entry_extensions: None,
            })
        })
        .collect::<der::Result<Vec<_>>>()?;
    // Must grow with every list, as the time does.
    let number = u64::try_from(now.0).unwrap_or_default().to_be_bytes();
    let number = CrlNumber(der::asn1::Uint::new(&number)?);
    let algorithm = signature_algorithm(key)?;
    let list = TbsCertList {
        version: Version::V2,
        signature: algorithm.clone(),
        issuer: authority.subject_name().clone(),
        this_update: x509_time(now)?,
        next_update: Some(x509_time(validity.not_after)?),
        revoked_certificates: (!entries.is_empty()).then_some(entries),
        crl_extensions: Some(vec![
            extension(
                "2.5.29.35",
                false,
                &authority_identifier(key_identifier(authority.key()))?,
            )?,
            extension("2.5.29.20", false, &number)?,
        ]),
    };
    let signature = key.sign(&list.to_der()?)?;
    let list = CertificateList {
        tbs_cert_list: list,
        signature_algorithm: algorithm,
        signature: BitString::from_bytes(&signature)?,
    };
    Ok(pem::encode("X509 CRL", &list.to_der()?))
}

fn issue(
    subject: &Name,
    public_key: &PublicKey,
    issuer: &Name,
    key: &PrivateKey,
    validity: Validity,
    is_authority: bool,
) -> Result<Certificate, SignError> {
    let usages: FlagSet<KeyUsages> = if is_authority {
        KeyUsages::DigitalSignature | KeyUsages::KeyCertSign | KeyUsages::CRLSign
    } else {
        KeyUsages::DigitalSignature | KeyUsages::KeyAgreement
    };
    let constraints = BasicConstraints {
        ca: is_authority,
        path_len_constraint: is_authority.then_some(0),
    };
    let own = key_identifier(public_key);
    let issuers = key_identifier(&key.public_key());
    let algorithm = signature_algorithm(key)?;
    let tbs = TbsCertificate {
        version: Version::V3,
        serial_number: serial()?,
        signature: algorithm.clone(),
        issuer: issuer.clone(),
        validity: X509Validity {
            not_before: x509_time(validity.not_before)?,
            not_after: x509_time(validity.not_after)?,
        },
        subject: subject.clone(),
        subject_public_key_info: key_info(public_key)?,
        issuer_unique_id: None,
        subject_unique_id: None,
        extensions: Some(vec![
            extension("2.5.29.19", is_authority, &constraints)?,
            extension("2.5.29.15", true, &KeyUsage(usages))?,
            extension(
                "2.5.29.14",
                false,
                &SubjectKeyIdentifier(OctetString::new(own)?),
            )?,
            extension("2.5.29.35", false, &authority_identifier(issuers)?)?,
        ]),
    };
    let signature = key.sign(&tbs.to_der()?)?;
    let certificate = x509_cert::Certificate {
        tbs_certificate: tbs,
        signature_algorithm: algorithm,
        signature: BitString::from_bytes(&signature)?,
    };
    // Parsed again: a certificate that we would reject is not written.
    Certificate::from_der(&certificate.to_der()?)
        .map_err(|_| SignError::Encoding(der::ErrorKind::Failed.into()))
}

/// A time of X.509: two digits of the year up to 2049 (RFC 5280 §4.1.2.5).
pub(crate) fn x509_time(time: UnixTime) -> der::Result<Time> {
    let seconds = u64::try_from(time.0).map_err(|_| der::ErrorKind::DateTime)?;
    let date = DateTime::from_unix_duration(std::time::Duration::from_secs(seconds))?;
    Ok(match date.year() {
        ..2050 => Time::UtcTime(UtcTime::from_date_time(date)?),
        _ => Time::GeneralTime(GeneralizedTime::from_date_time(date)),
    })
}

fn name(common_name: &str) -> der::Result<Name> {
    let value = x509_cert::attr::AttributeTypeAndValue {
        oid: ObjectIdentifier::new("2.5.4.3")?,
        value: Any::encode_from(&der::asn1::Utf8StringRef::new(common_name)?)?,
    };
    let part = RelativeDistinguishedName::try_from(vec![value])?;
    Ok(Name::from(vec![part]))
}

/// 159 random bits; 64 are required against guessing.
fn serial() -> Result<SerialNumber, SignError> {
    let mut bytes = [0; 20];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| RandomnessFailed)?;
    if let Some(first) = bytes.first_mut() {
        // Positive, and of full length.
        *first = (*first & 0x7f) | 0x40;
    }
    Ok(SerialNumber::new(&bytes)?)
}

fn key_info(key: &PublicKey) -> der::Result<SubjectPublicKeyInfoOwned> {
    let (oid, parameters) = match key.kind() {
        KeyKind::EcP256 => (
            EC_PUBLIC_KEY,
            Any::encode_from(&ObjectIdentifier::new(PRIME256V1)?)?,
        ),
        KeyKind::Rsa => (RSA_ENCRYPTION, Any::null()),
    };
    Ok(SubjectPublicKeyInfoOwned {
        algorithm: AlgorithmIdentifierOwned {
            oid: ObjectIdentifier::new(oid)?,
            parameters: Some(parameters),
        },
        subject_public_key: BitString::from_bytes(key.as_bytes())?,
    })
}

fn signature_algorithm(key: &PrivateKey) -> der::Result<AlgorithmIdentifierOwned> {
    Ok(AlgorithmIdentifierOwned {
        oid: ObjectIdentifier::new(key.scheme_oid())?,
        parameters: (key.kind() == KeyKind::Rsa).then(Any::null),
    })
}

/// RFC 7093 §2, method 1: of SHA-256 the first 160 bits.
fn key_identifier(key: &PublicKey) -> Vec<u8> {
    let hash = digest(&SHA256, key.as_bytes());
    hash.as_ref().iter().copied().take(20).collect()
}

fn authority_identifier(identifier: Vec<u8>) -> der::Result<AuthorityKeyIdentifier> {
    Ok(AuthorityKeyIdentifier {
        key_identifier: Some(OctetString::new(identifier)?),
        authority_cert_issuer: None,
        authority_cert_serial_number: None,
    })
}

fn extension(oid: &str, critical: bool, value: &impl Encode) -> der::Result<Extension> {
    Ok(Extension {
        extn_id: ObjectIdentifier::new(oid)?,
        critical,
        extn_value: OctetString::new(value.to_der()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use der::Decode;

    /// RFC 5758 §3.2: ECDSA has no parameters. RFC 4055 §5: those of RSA are NULL.
    /// Strict readers refuse anything else.
    #[test]
    fn signature_algorithms_have_the_parameters_of_their_rfc() {
        let validity = Validity {
            not_before: UnixTime(1_700_000_000),
            not_after: UnixTime(1_800_000_000),
        };
        for (key, expected) in [
            (PrivateKey::generate().unwrap(), None),
            (PrivateKey::generate_rsa().unwrap(), Some(Any::null())),
        ] {
            let certificate = authority("ca", &key, validity).unwrap();
            let certificate = x509_cert::Certificate::from_der(certificate.der()).unwrap();
            let inner = certificate.tbs_certificate.signature;
            assert_eq!(certificate.signature_algorithm, inner);
            assert_eq!(inner.parameters, expected, "{key:?}");
        }
    }
}
