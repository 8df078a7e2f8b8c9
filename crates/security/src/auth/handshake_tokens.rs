//! Handshake tokens: the content of the three tokens of a handshake, and its
//! validation: the peer's identity, its permissions, and that it holds the private
//! key of its certificate.

use aws_lc_rs::digest::{SHA256, digest};
use pteros_rtps::id::GuidPrefix;

use super::guid::is_prefix_of;
use super::handshakes::LocalIdentity;
use super::token::Token;
use crate::certificate::Certificate;
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::identity::CertificateRejection;
use crate::key::{KeyKind, RandomnessFailed, Scheme};
use crate::permissions::Permissions;
use crate::smime::SignedDocument;

/// The identity and permissions that a peer has proved in a handshake.
#[derive(Debug)]
pub struct AuthenticatedPeer {
    /// Its certificate, then those up to the authority.
    pub chain: Vec<Certificate>,
    /// Its permissions document.
    pub permissions: Permissions,
    /// The data it announces, covered by its signature: a parameter list,
    /// big-endian.
    pub participant_data: Vec<u8>,
}

/// Why a handshake message is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeRejection {
    /// A property is missing or malformed.
    #[error("the handshake's {0} is missing or malformed")]
    Malformed(&'static str),
    /// The certificate cannot be read.
    #[error("{0}")]
    Certificate(Diagnostic),
    /// The certificate is not valid here.
    #[error(transparent)]
    Identity(#[from] CertificateRejection),
    /// The GUID prefix belongs to another certificate.
    #[error("its GUID prefix is not that of its certificate's subject")]
    WrongGuidPrefix,
    /// The permissions are unsigned, forged or malformed, or have no grant for the
    /// subject.
    #[error("{0}")]
    Permissions(Diagnostic),
    /// An unknown signature or key agreement algorithm.
    #[error("it proposes '{0}', an algorithm that is not supported")]
    Algorithm(String),
    /// A challenge, key or hash differs from the one that was sent.
    #[error("its {0} is not the one that was sent")]
    Mismatch(&'static str),
    /// The signature is not by the certificate's key.
    #[error("its signature is not by the key of its certificate")]
    Signature,
    /// No reply in time.
    #[error("it did not answer within {0} s; its own log may say why")]
    TimedOut(u64),
    /// There is no randomness on this host.
    #[error(transparent)]
    Randomness(#[from] RandomnessFailed),
}

/// Which side sent a token. Property names differ by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeSide {
    Initiator,
    Replier,
}

impl HandshakeSide {
    pub const fn hash(self) -> &'static str {
        match self {
            Self::Initiator => "hash_c1",
            Self::Replier => "hash_c2",
        }
    }

    pub const fn key(self) -> &'static str {
        match self {
            Self::Initiator => "dh1",
            Self::Replier => "dh2",
        }
    }

    pub const fn challenge(self) -> &'static str {
        match self {
            Self::Initiator => "challenge1",
            Self::Replier => "challenge2",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Replier,
            Self::Replier => Self::Initiator,
        }
    }
}

/// Contribution of one side to the handshake: credentials hash, public key,
/// challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contribution {
    pub hash: [u8; 32],
    pub key: Vec<u8>,
    pub challenge: [u8; 32],
}

impl Contribution {
    /// Reads one side's contribution. The hash is computed from `c.*`. If it is
    /// also sent, both must be equal.
    pub fn read(
        token: &Token,
        side: HandshakeSide,
        hash: [u8; 32],
    ) -> Result<Self, HandshakeRejection> {
        let stated = token.get(side.hash());
        if stated.is_some_and(|stated| stated != hash) {
            return Err(HandshakeRejection::Mismatch(side.hash()));
        }
        let challenge = token.get(side.challenge()).and_then(|c| c.try_into().ok());
        Ok(Self {
            hash,
            key: property(token, side.key())?.to_vec(),
            challenge: challenge.ok_or(HandshakeRejection::Malformed(side.challenge()))?,
        })
    }

    /// Checks that a token repeats this contribution. Hashes and keys may be left
    /// out (DDS Security 1.1 §9.3.2.5.2), the challenge may not.
    pub fn check_repeated_in(
        &self,
        token: &Token,
        side: HandshakeSide,
    ) -> Result<(), HandshakeRejection> {
        if token.get(side.challenge()) != Some(&self.challenge) {
            return Err(HandshakeRejection::Mismatch(side.challenge()));
        }
        for (name, own) in [(side.hash(), &self.hash[..]), (side.key(), &self.key[..])] {
            if token.get(name).is_some_and(|stated| stated != own) {
                return Err(HandshakeRejection::Mismatch(name));
            }
        }
        Ok(())
    }

    fn push(&self, token: &mut Token, side: HandshakeSide) {
        for (name, value) in [
            (side.hash(), &self.hash[..]),
            (side.key(), &self.key[..]),
            (side.challenge(), &self.challenge[..]),
        ] {
            token.binary.push((name.into(), value.to_vec()));
        }
    }
}

/// The five credential properties; `with_nul` ends them like C strings.
pub(super) fn credentials(own: &LocalIdentity, agreement: &str, with_nul: bool) -> Token {
    let name = |name: &str| {
        if with_nul {
            [name.as_bytes(), &[0]].concat()
        } else {
            name.as_bytes().to_vec()
        }
    };
    let chain = own.enclave.identity.chain.iter();
    let pem: String = chain.map(Certificate::to_pem).collect();
    let algorithm = signature_name(own.enclave.identity.key.kind());
    let binary = vec![
        ("c.id".into(), pem.into_bytes()),
        ("c.perm".into(), own.enclave.permissions_file.clone()),
        ("c.pdata".into(), own.participant_data.clone()),
        ("c.dsign_algo".into(), name(algorithm)),
        ("c.kagree_algo".into(), name(agreement)),
    ];
    Token {
        binary,
        ..Token::default()
    }
}

/// SHA-256 of the five credential properties as they are in a token.
pub(super) fn credentials_hash(token: &Token) -> Result<[u8; 32], HandshakeRejection> {
    let mut named = Vec::with_capacity(CREDENTIALS.len());
    for name in CREDENTIALS {
        named.push((name, property(token, name)?));
    }
    let hash = digest(&SHA256, &Token::serialized(&named));
    hash.as_ref()
        .try_into()
        .map_err(|_| HandshakeRejection::Malformed("hash"))
}

/// A token whose class ends with this suffix, with credentials if given, and the
/// contributions, the own side's first.
pub(super) fn token(
    word: &str,
    credentials: Option<&Token>,
    contributions: &[(HandshakeSide, &Contribution)],
) -> Token {
    let mut token = credentials.cloned().unwrap_or_default();
    token.class = format!("{CLASS}{word}");
    for (side, contribution) in contributions {
        contribution.push(&mut token, *side);
    }
    token
}

/// Signs both contributions as this side.
pub(super) fn sign(
    own: &LocalIdentity,
    side: HandshakeSide,
    ours: &Contribution,
    theirs: &Contribution,
) -> Result<Vec<u8>, HandshakeRejection> {
    let signed = signed(side, ours, theirs);
    Ok(own.enclave.identity.key.sign_handshake(&signed)?)
}

/// Verifies that the peer, as `side`, signed both contributions.
pub(super) fn verify(
    peer: &AuthenticatedPeer,
    token: &Token,
    side: HandshakeSide,
    theirs: &Contribution,
    ours: &Contribution,
) -> Result<(), HandshakeRejection> {
    let signature = property(token, "signature")?;
    let certificate = peer.chain.first().ok_or(CertificateRejection::Empty)?;
    let scheme = match certificate.key().kind() {
        KeyKind::EcP256 => Scheme::EcdsaSha256,
        KeyKind::Rsa => Scheme::RsaPssSha256,
    };
    let signed = signed(side, theirs, ours);
    let good = certificate.key().verifies(scheme, &signed, signature);
    good.then_some(()).ok_or(HandshakeRejection::Signature)
}

fn signed(side: HandshakeSide, signer: &Contribution, other: &Contribution) -> Vec<u8> {
    let theirs = side.other();
    Token::serialized(&[
        (side.hash(), &signer.hash),
        (side.challenge(), &signer.challenge),
        (side.key(), &signer.key),
        (theirs.challenge(), &other.challenge),
        (theirs.key(), &other.key),
        (theirs.hash(), &other.hash),
    ])
}

/// Validates the sender of a request or reply: certificate, GUID prefix and
/// permissions.
pub(super) fn validate_peer(
    own: &LocalIdentity,
    token: &Token,
    prefix: GuidPrefix,
    now: UnixTime,
) -> Result<AuthenticatedPeer, HandshakeRejection> {
    let file = format!("certificate of peer {prefix}");
    let chain = Certificate::from_pem(&file, property(token, "c.id")?)
        .map_err(HandshakeRejection::Certificate)?;
    own.enclave.identity_authority.admit(&chain, now)?;
    let certificate = chain.first().ok_or(CertificateRejection::Empty)?;
    let participant_data = property(token, "c.pdata")?;
    let announced =
        announced_prefix(participant_data).ok_or(HandshakeRejection::Malformed("c.pdata"))?;
    if !is_prefix_of(certificate, prefix) || announced != prefix {
        return Err(HandshakeRejection::WrongGuidPrefix);
    }
    let expected = signature_name(certificate.key().kind());
    has_name(token, "c.dsign_algo", expected)?;
    let permissions = permissions(own, token, prefix, certificate, now)?;
    Ok(AuthenticatedPeer {
        permissions,
        participant_data: participant_data.to_vec(),
        chain,
    })
}

fn permissions(
    own: &LocalIdentity,
    token: &Token,
    prefix: GuidPrefix,
    certificate: &Certificate,
    now: UnixTime,
) -> Result<Permissions, HandshakeRejection> {
    let file = format!("permissions of peer {prefix}");
    let content = property(token, "c.perm")?;
    let authority = &own.enclave.permissions_authority;
    let read = || -> Result<Permissions, Diagnostic> {
        // C strings end with a zero.
        let content = content.strip_suffix(&[0]).unwrap_or(content);
        let document = SignedDocument::read(&file, content, authority, now)?;
        let permissions = Permissions::read(document.source(&file))?;
        let subject = certificate.subject();
        let grant = permissions.grant(subject).ok_or_else(|| {
            let reason = format!("no grant names its subject '{subject}'");
            Diagnostic::new(&*file, "<subject_name>", "", reason, "sign a grant for it")
        })?;
        if let Some(reason) = grant.validity.rejection(now) {
            let fault =
                Diagnostic::new(&*file, "<validity>", &grant.name, reason, "sign a new one");
            return Err(fault.at_line(grant.line));
        }
        Ok(permissions)
    };
    read().map_err(HandshakeRejection::Permissions)
}

/// The GUID prefix in a parameter list, big-endian, without encapsulation.
fn announced_prefix(data: &[u8]) -> Option<GuidPrefix> {
    let mut rest = data;
    loop {
        let ([id_high, id_low, high, low], after) = rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        match u16::from_be_bytes([*id_high, *id_low]) {
            PARTICIPANT_GUID => {
                let guid = after.get(..length)?;
                return Some(GuidPrefix(*guid.first_chunk()?));
            }
            SENTINEL => return None,
            _ => rest = after.get(length..)?,
        }
    }
}

/// Checks an algorithm name. Vendors differ in whether names end with a zero.
pub(super) fn has_name(
    token: &Token,
    property_name: &'static str,
    expected: &str,
) -> Result<(), HandshakeRejection> {
    let value = name_of(token, property_name)?;
    if value == expected {
        Ok(())
    } else {
        Err(HandshakeRejection::Algorithm(value))
    }
}

/// The name in a property, shortened for messages.
pub(super) fn name_of(
    token: &Token,
    property_name: &'static str,
) -> Result<String, HandshakeRejection> {
    let value = property(token, property_name)?;
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    let shown = String::from_utf8_lossy(value);
    Ok(shown.chars().take(64).collect())
}

/// Whether the names of a token end with a zero. Replies then do, too.
pub(super) fn has_nul(token: &Token) -> bool {
    token
        .get("c.kagree_algo")
        .is_some_and(|name| name.ends_with(&[0]))
}

fn property<'a>(token: &'a Token, name: &'static str) -> Result<&'a [u8], HandshakeRejection> {
    token.get(name).ok_or(HandshakeRejection::Malformed(name))
}

const fn signature_name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::EcP256 => "ECDSA-SHA256",
        KeyKind::Rsa => "RSASSA-PSS-SHA256",
    }
}

/// Prefix of the tokens' class names.
pub(super) const CLASS: &str = "DDS:Auth:PKI-DH:1.0";
const CREDENTIALS: [&str; 5] = ["c.id", "c.perm", "c.pdata", "c.dsign_algo", "c.kagree_algo"];
/// PID_PARTICIPANT_GUID and PID_SENTINEL (RTPS 2.5 §9.6.3).
const PARTICIPANT_GUID: u16 = 0x0050;
const SENTINEL: u16 = 0x0001;
