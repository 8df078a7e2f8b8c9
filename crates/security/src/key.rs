//! Keys and signatures: ECDSA on P-256 and RSA of 2048 bits or more, with SHA-2
//! (DDS Security 1.1 §9.3.1.1). Weaker keys are rejected.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA384_ASN1,
    ECDSA_P256_SHA512_ASN1, EcdsaKeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PKCS1_SHA256,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256, RsaParameters, RsaPssSaltLength, UnparsedPublicKey,
    VerificationAlgorithm,
};
use der::asn1::ObjectIdentifier;

use crate::diagnostic::Diagnostic;
use crate::pem;

/// The kinds of keys that certificates and handshakes may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// ECDSA on the curve P-256, also called prime256v1.
    EcP256,
    /// RSA with 2048 bits or more.
    Rsa,
}

/// Signature schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// ECDSA with SHA-256, in DER.
    EcdsaSha256,
    /// ECDSA with SHA-384.
    EcdsaSha384,
    /// ECDSA with SHA-512.
    EcdsaSha512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RsaPkcs1Sha256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    RsaPkcs1Sha384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    RsaPkcs1Sha512,
    /// RSASSA-PSS with SHA-256. The salt is as long as the digest (Fast DDS)
    /// or as long as it can be (Cyclone DDS).
    RsaPssSha256,
}

impl Scheme {
    /// The scheme with this identifier in a certificate.
    pub(crate) fn of(oid: &ObjectIdentifier) -> Result<Self, String> {
        Ok(match oid.to_string().as_str() {
            ECDSA_WITH_SHA256 => Self::EcdsaSha256,
            "1.2.840.10045.4.3.3" => Self::EcdsaSha384,
            "1.2.840.10045.4.3.4" => Self::EcdsaSha512,
            SHA256_WITH_RSA => Self::RsaPkcs1Sha256,
            "1.2.840.113549.1.1.12" => Self::RsaPkcs1Sha384,
            "1.2.840.113549.1.1.13" => Self::RsaPkcs1Sha512,
            "1.2.840.113549.1.1.10" => Self::RsaPssSha256,
            "1.2.840.113549.1.1.5" | "1.2.840.10045.4.1" => {
                return Err("SHA-1 is broken; sign with SHA-256".into());
            }
            other => return Err(format!("unsupported signature algorithm {other}")),
        })
    }
}

/// The public half of a key pair, as a certificate holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    /// The EC point, or the RSAPublicKey.
    bytes: Vec<u8>,
}

impl PublicKey {
    /// Decodes a SubjectPublicKeyInfo; the error is the reason.
    pub(crate) fn new(
        algorithm: &ObjectIdentifier,
        curve: Option<ObjectIdentifier>,
        bytes: &[u8],
    ) -> Result<Self, String> {
        let kind = match algorithm.to_string().as_str() {
            EC_PUBLIC_KEY => {
                let curve = curve.map(|curve| curve.to_string());
                if curve.as_deref() != Some(PRIME256V1) {
                    return Err("an elliptic curve other than P-256".into());
                }
                KeyKind::EcP256
            }
            RSA_ENCRYPTION | "1.2.840.113549.1.1.10" => {
                let bits = RsaParameters::public_modulus_len(bytes)
                    .map_err(|_| "not an RSA key".to_owned())?;
                if !(2048..=8192).contains(&bits) {
                    return Err(format!("RSA with {bits} bits; 2048 to 8192 are accepted"));
                }
                KeyKind::Rsa
            }
            other => return Err(format!("unsupported key type {other}")),
        };
        Ok(Self {
            kind,
            bytes: bytes.to_vec(),
        })
    }

    /// The algorithm of the key.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Whether the signature of `message` is by this key.
    pub fn verifies(&self, scheme: Scheme, message: &[u8], signature: &[u8]) -> bool {
        static PSS_LONGEST_SALT: RsaParameters =
            RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);
        let with = |algorithm: &'static dyn VerificationAlgorithm| {
            let key = UnparsedPublicKey::new(algorithm, &self.bytes);
            key.verify(message, signature).is_ok()
        };
        match (self.kind, scheme) {
            (KeyKind::EcP256, Scheme::EcdsaSha256) => with(&ECDSA_P256_SHA256_ASN1),
            (KeyKind::EcP256, Scheme::EcdsaSha384) => with(&ECDSA_P256_SHA384_ASN1),
            (KeyKind::EcP256, Scheme::EcdsaSha512) => with(&ECDSA_P256_SHA512_ASN1),
            (KeyKind::Rsa, Scheme::RsaPkcs1Sha256) => with(&RSA_PKCS1_2048_8192_SHA256),
            (KeyKind::Rsa, Scheme::RsaPkcs1Sha384) => with(&RSA_PKCS1_2048_8192_SHA384),
            (KeyKind::Rsa, Scheme::RsaPkcs1Sha512) => with(&RSA_PKCS1_2048_8192_SHA512),
            (KeyKind::Rsa, Scheme::RsaPssSha256) => {
                with(&RSA_PSS_2048_8192_SHA256) || with(&PSS_LONGEST_SALT)
            }
            _ => false,
        }
    }

    /// The content of a SubjectPublicKeyInfo's bit string.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A private key. Debug output hides it; wiped when dropped.
pub struct PrivateKey(Pair);

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.kind())
    }
}

impl PrivateKey {
    /// Generates a key on P-256.
    pub fn generate() -> Result<Self, RandomnessFailed> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
        Ok(Self(Pair::Ec(pair.map_err(|_| RandomnessFailed)?)))
    }

    /// Generates an RSA key of 2048 bits; takes about a tenth of a second.
    pub fn generate_rsa() -> Result<Self, RandomnessFailed> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048);
        Ok(Self(Pair::Rsa(pair.map_err(|_| RandomnessFailed)?)))
    }

    /// Reads a PEM file: PKCS#8, or OpenSSL's older formats.
    pub fn from_pem(file: &str, text: &[u8]) -> Result<Self, Diagnostic> {
        let fault = |value: &str, reason: &str, remedy: &str| {
            Diagnostic::new(file, "private key", value, reason, remedy)
        };
        if text.starts_with(b"pkcs11:") {
            return Err(fault(
                "pkcs11:",
                "keys on PKCS#11 tokens cannot be used here",
                "give the enclave a key.pem",
            ));
        }
        let encrypted = "is encrypted";
        let decrypt = "decrypt it with `openssl pkey -in key.pem -out key.pem`";
        if String::from_utf8_lossy(text).contains("Proc-Type: 4,ENCRYPTED") {
            return Err(fault("", encrypted, decrypt));
        }
        let blocks = pem::blocks(file, text)?;
        let key = blocks
            .iter()
            .find(|block| block.label.ends_with("PRIVATE KEY"))
            .ok_or_else(|| fault("", "there is none in the file", "is it the right file?"))?;
        let pair = match key.label.as_str() {
            "ENCRYPTED PRIVATE KEY" => return Err(fault("", encrypted, decrypt)),
            _ => EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, &key.der)
                .map(Pair::Ec)
                .or_else(|_| RsaKeyPair::from_pkcs8(&key.der).map(Pair::Rsa))
                .or_else(|_| RsaKeyPair::from_der(&key.der).map(Pair::Rsa)),
        };
        pair.map(Self).map_err(|_| {
            fault(
                &key.label,
                "neither an EC key on P-256 nor an RSA key of 2048 bits or more",
                "create a new key and certificate: `pteros security create_enclave`",
            )
        })
    }

    /// As PKCS#8 in PEM.
    pub fn to_pem(&self) -> Result<String, RandomnessFailed> {
        use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
        let block = |der: &[u8]| pem::encode("PRIVATE KEY", der);
        match &self.0 {
            Pair::Ec(pair) => pair.to_pkcs8v1().map(|der| block(der.as_ref())),
            Pair::Rsa(pair) => AsDer::<Pkcs8V1Der<'_>>::as_der(pair).map(|der| block(der.as_ref())),
        }
        .map_err(|_| RandomnessFailed)
    }

    /// The algorithm of the key pair.
    pub fn kind(&self) -> KeyKind {
        match self.0 {
            Pair::Ec(_) => KeyKind::EcP256,
            Pair::Rsa(_) => KeyKind::Rsa,
        }
    }

    /// The public half, computed from the pair.
    pub fn public_key(&self) -> PublicKey {
        let bytes = match &self.0 {
            Pair::Ec(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        };
        PublicKey {
            kind: self.kind(),
            bytes,
        }
    }

    /// Signs for files: ECDSA or RSASSA-PKCS1-v1_5, with SHA-256.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, RandomnessFailed> {
        match &self.0 {
            Pair::Ec(pair) => pair
                .sign(&SystemRandom::new(), message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| RandomnessFailed),
            Pair::Rsa(pair) => sign_rsa(pair, &RSA_PKCS1_SHA256, message),
        }
    }

    /// Signs for the handshake: ECDSA or RSASSA-PSS, with SHA-256 (DDS
    /// Security 1.1 §9.3.2.5.2).
    pub fn sign_handshake(&self, message: &[u8]) -> Result<Vec<u8>, RandomnessFailed> {
        match &self.0 {
            Pair::Ec(_) => self.sign(message),
            Pair::Rsa(pair) => sign_rsa(pair, &RSA_PSS_SHA256, message),
        }
    }

    /// The scheme of [`sign`](Self::sign).
    pub(crate) fn scheme_oid(&self) -> &'static str {
        match self.kind() {
            KeyKind::EcP256 => ECDSA_WITH_SHA256,
            KeyKind::Rsa => SHA256_WITH_RSA,
        }
    }
}

fn sign_rsa(
    pair: &RsaKeyPair,
    encoding: &'static aws_lc_rs::signature::RsaSignatureEncoding,
    message: &[u8],
) -> Result<Vec<u8>, RandomnessFailed> {
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(encoding, &SystemRandom::new(), message, &mut signature)
        .map_err(|_| RandomnessFailed)?;
    Ok(signature)
}

/// The system gave no random numbers, or no memory for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no randomness for a key or signature; is its entropy source working?")]
pub struct RandomnessFailed;

pub(crate) const EC_PUBLIC_KEY: &str = "1.2.840.10045.2.1";
pub(crate) const PRIME256V1: &str = "1.2.840.10045.3.1.7";
pub(crate) const RSA_ENCRYPTION: &str = "1.2.840.113549.1.1.1";
const ECDSA_WITH_SHA256: &str = "1.2.840.10045.4.3.2";
const SHA256_WITH_RSA: &str = "1.2.840.113549.1.1.11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_keys_sign_are_written_and_read_back() {
        for key in [
            PrivateKey::generate().unwrap(),
            PrivateKey::generate_rsa().unwrap(),
        ] {
            let key = PrivateKey::from_pem("k", key.to_pem().unwrap().as_bytes()).unwrap();
            let public = key.public_key();
            let (file, handshake) = match key.kind() {
                KeyKind::EcP256 => (Scheme::EcdsaSha256, Scheme::EcdsaSha256),
                KeyKind::Rsa => (Scheme::RsaPkcs1Sha256, Scheme::RsaPssSha256),
            };
            let signature = key.sign(b"text").unwrap();
            assert!(public.verifies(file, b"text", &signature));
            assert!(!public.verifies(file, b"Text", &signature));
            let signature = key.sign_handshake(b"text").unwrap();
            assert!(public.verifies(handshake, b"text", &signature));
            assert!(!public.verifies(handshake, b"text", &signature[1..]));
            assert!(!format!("{key:?}").contains('['));
        }
    }

    /// A certificate names the scheme, so an attacker chooses it.
    #[test]
    fn a_scheme_of_the_other_kind_of_key_verifies_nothing() {
        let ec = PrivateKey::generate().unwrap();
        let rsa = PrivateKey::generate_rsa().unwrap();
        let of_ec = [
            Scheme::EcdsaSha256,
            Scheme::EcdsaSha384,
            Scheme::EcdsaSha512,
        ];
        let of_rsa = [
            Scheme::RsaPkcs1Sha256,
            Scheme::RsaPkcs1Sha384,
            Scheme::RsaPkcs1Sha512,
            Scheme::RsaPssSha256,
        ];
        for (key, foreign) in [(&ec, &of_rsa[..]), (&rsa, &of_ec[..])] {
            let signature = key.sign(b"text").unwrap();
            for scheme in foreign {
                let public = key.public_key();
                assert!(!public.verifies(*scheme, b"text", &signature), "{scheme:?}");
            }
        }
    }

    #[test]
    fn unusable_keys_are_rejected_with_a_reason() {
        for (text, reason) in [
            ("", "none in the file"),
            ("pkcs11:token=x", "PKCS#11"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
                "encrypted",
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----",
                "encrypted",
            ),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
                "neither",
            ),
        ] {
            let fault = PrivateKey::from_pem("key.pem", text.as_bytes()).unwrap_err();
            assert!(fault.reason.contains(reason), "{fault}");
        }
    }
}
