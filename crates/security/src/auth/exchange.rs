//! What the three tokens of a handshake say, and whether it is believed: who
//! the peer is, what it may do, and that it holds the key of its certificate.

use aws_lc_rs::digest::{SHA256, digest};
use pteros_rtps::id::GuidPrefix;

use super::guid::is_prefix_of;
use super::handshakes::Own;
use super::token::Token;
use crate::certificate::Certificate;
use crate::date::UnixTime;
use crate::fault::Fault;
use crate::identity::Refusal;
use crate::key::{KeyKind, RandomnessFailed, Scheme};
use crate::permissions::Permissions;
use crate::smime::SignedDocument;

/// A peer that proved who it is.
#[derive(Debug)]
pub struct Peer {
    /// Its certificate, then those up to the authority.
    pub chain: Vec<Certificate>,
    /// What it may do.
    pub permissions: Permissions,
    /// What it announces, as its signature covers it: a parameter list,
    /// big-endian.
    pub participant_data: Vec<u8>,
}

/// Why a peer is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A property is missing, or not what it should be.
    #[error("the handshake's {0} is missing or malformed")]
    Malformed(&'static str),
    /// The certificate cannot be read.
    #[error("{0}")]
    Certificate(Fault),
    /// The certificate proves nothing here.
    #[error(transparent)]
    Identity(#[from] Refusal),
    /// Somebody else's prefix.
    #[error("its prefix is not that of its certificate's subject")]
    Prefix,
    /// Unsigned, forged or malformed permissions, or none for the subject.
    #[error("{0}")]
    Permissions(Fault),
    /// Another way to sign or agree.
    #[error("it proposes '{0}', which is not known here")]
    Algorithm(String),
    /// A challenge, key or hash that is not the one that was sent.
    #[error("its {0} is not the one that was sent")]
    Mismatch(&'static str),
    /// The signature is not by the certificate's key.
    #[error("its signature is not by the key of its certificate")]
    Signature,
    /// No answer in time.
    #[error("it did not answer within {0} s; its own log may say why")]
    Silent(u64),
    /// No randomness here.
    #[error(transparent)]
    Randomness(#[from] RandomnessFailed),
}

/// Whose token it is: names of properties differ by that alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Initiator,
    Replier,
}

impl Side {
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

/// What one side brought to the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contribution {
    pub hash: [u8; 32],
    pub key: Vec<u8>,
    pub challenge: [u8; 32],
}

impl Contribution {
    /// Reads that of one side; the hash is computed from `c.*`, and if it is
    /// sent along must be the same.
    pub fn read(token: &Token, side: Side, hash: [u8; 32]) -> Result<Self, Rejection> {
        let stated = token.get(side.hash());
        if stated.is_some_and(|stated| stated != hash) {
            return Err(Rejection::Mismatch(side.hash()));
        }
        let challenge = token.get(side.challenge()).and_then(|c| c.try_into().ok());
        Ok(Self {
            hash,
            key: property(token, side.key())?.to_vec(),
            challenge: challenge.ok_or(Rejection::Malformed(side.challenge()))?,
        })
    }

    /// Whether a token repeats this one faithfully. Hashes and keys may be left
    /// out (DDS Security 1.1 §9.3.2.5.2), the challenge may not.
    pub fn is_in(&self, token: &Token, side: Side) -> Result<(), Rejection> {
        if token.get(side.challenge()) != Some(&self.challenge) {
            return Err(Rejection::Mismatch(side.challenge()));
        }
        for (name, own) in [(side.hash(), &self.hash[..]), (side.key(), &self.key[..])] {
            if token.get(name).is_some_and(|stated| stated != own) {
                return Err(Rejection::Mismatch(name));
            }
        }
        Ok(())
    }

    fn push(&self, token: &mut Token, side: Side) {
        for (name, value) in [
            (side.hash(), &self.hash[..]),
            (side.key(), &self.key[..]),
            (side.challenge(), &self.challenge[..]),
        ] {
            token.binary.push((name.into(), value.to_vec()));
        }
    }
}

/// The five properties that say who one is, with `with_nul` as C's strings.
pub(super) fn credentials(own: &Own, agreement: &str, with_nul: bool) -> Token {
    let name = |name: &str| match with_nul {
        true => [name.as_bytes(), &[0]].concat(),
        false => name.as_bytes().to_vec(),
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

/// SHA-256 of the five properties as they stand in a token.
pub(super) fn credentials_hash(token: &Token) -> Result<[u8; 32], Rejection> {
    let mut named = Vec::with_capacity(CREDENTIALS.len());
    for name in CREDENTIALS {
        named.push((name, property(token, name)?));
    }
    let hash = digest(&SHA256, &Token::serialized(&named));
    hash.as_ref()
        .try_into()
        .map_err(|_| Rejection::Malformed("hash"))
}

/// A token of the class that ends so, with credentials if they are given and
/// the contributions, the own side's first.
pub(super) fn token(
    word: &str,
    credentials: Option<&Token>,
    contributions: &[(Side, &Contribution)],
) -> Token {
    let mut token = credentials.cloned().unwrap_or_default();
    token.class = format!("{CLASS}{word}");
    for (side, contribution) in contributions {
        contribution.push(&mut token, *side);
    }
    token
}

/// Signs what both brought, as this side.
pub(super) fn sign(
    own: &Own,
    side: Side,
    ours: &Contribution,
    theirs: &Contribution,
) -> Result<Vec<u8>, Rejection> {
    let signed = signed(side, ours, theirs);
    Ok(own.enclave.identity.key.sign_handshake(&signed)?)
}

/// Whether the peer, on `side`, signed what both brought.
pub(super) fn verify(
    peer: &Peer,
    token: &Token,
    side: Side,
    theirs: &Contribution,
    ours: &Contribution,
) -> Result<(), Rejection> {
    let signature = property(token, "signature")?;
    let certificate = peer.chain.first().ok_or(Refusal::Empty)?;
    let scheme = match certificate.key().kind() {
        KeyKind::EcP256 => Scheme::EcdsaSha256,
        KeyKind::Rsa => Scheme::RsaPssSha256,
    };
    let signed = signed(side, theirs, ours);
    let good = certificate.key().verifies(scheme, &signed, signature);
    good.then_some(()).ok_or(Rejection::Signature)
}

fn signed(side: Side, signer: &Contribution, other: &Contribution) -> Vec<u8> {
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

/// Who sent a request or reply, if it can be believed so far.
pub(super) fn judge(
    own: &Own,
    token: &Token,
    prefix: GuidPrefix,
    now: UnixTime,
) -> Result<Peer, Rejection> {
    let file = format!("certificate of peer {prefix}");
    let chain =
        Certificate::from_pem(&file, property(token, "c.id")?).map_err(Rejection::Certificate)?;
    own.enclave.identity_authority.admit(&chain, now)?;
    let certificate = chain.first().ok_or(Refusal::Empty)?;
    let participant_data = property(token, "c.pdata")?;
    let announced = announced_prefix(participant_data).ok_or(Rejection::Malformed("c.pdata"))?;
    if !is_prefix_of(certificate, prefix) || announced != prefix {
        return Err(Rejection::Prefix);
    }
    let expected = signature_name(certificate.key().kind());
    named(token, "c.dsign_algo", expected)?;
    let permissions = permissions(own, token, prefix, certificate, now)?;
    Ok(Peer {
        permissions,
        participant_data: participant_data.to_vec(),
        chain,
    })
}

fn permissions(
    own: &Own,
    token: &Token,
    prefix: GuidPrefix,
    certificate: &Certificate,
    now: UnixTime,
) -> Result<Permissions, Rejection> {
    let file = format!("permissions of peer {prefix}");
    let content = property(token, "c.perm")?;
    let authority = &own.enclave.permissions_authority;
    let read = || -> Result<Permissions, Fault> {
        // C's strings end with a zero.
        let content = content.strip_suffix(&[0]).unwrap_or(content);
        let document = SignedDocument::read(&file, content, authority, now)?;
        let permissions = Permissions::read(document.source(&file))?;
        let subject = certificate.subject();
        let grant = permissions.grant(subject).ok_or_else(|| {
            let reason = format!("no grant names its subject '{subject}'");
            Fault::new(&*file, "<subject_name>", "", reason, "sign a grant for it")
        })?;
        if let Some(reason) = grant.validity.refusal(now) {
            let fault = Fault::new(&*file, "<validity>", &grant.name, reason, "sign a new one");
            return Err(fault.at_line(grant.line));
        }
        Ok(permissions)
    };
    read().map_err(Rejection::Permissions)
}

/// The prefix in a list of parameters, big-endian, without encapsulation.
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

/// Vendors differ in whether names end with a zero.
pub(super) fn named(
    token: &Token,
    property_name: &'static str,
    expected: &str,
) -> Result<(), Rejection> {
    let value = name_of(token, property_name)?;
    match value == expected {
        true => Ok(()),
        false => Err(Rejection::Algorithm(value)),
    }
}

/// The name that a property has, shortened.
pub(super) fn name_of(token: &Token, property_name: &'static str) -> Result<String, Rejection> {
    let value = property(token, property_name)?;
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    let shown = String::from_utf8_lossy(value);
    Ok(shown.chars().take(64).collect())
}

/// Whether the names of a token end with a zero, so that answers can, too.
pub(super) fn has_nul(token: &Token) -> bool {
    token
        .get("c.kagree_algo")
        .is_some_and(|name| name.ends_with(&[0]))
}

fn property<'a>(token: &'a Token, name: &'static str) -> Result<&'a [u8], Rejection> {
    token.get(name).ok_or(Rejection::Malformed(name))
}

const fn signature_name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::EcP256 => "ECDSA-SHA256",
        KeyKind::Rsa => "RSASSA-PSS-SHA256",
    }
}

/// The beginning of the tokens' class names.
pub(super) const CLASS: &str = "DDS:Auth:PKI-DH:1.0";
const CREDENTIALS: [&str; 5] = ["c.id", "c.perm", "c.pdata", "c.dsign_algo", "c.kagree_algo"];
/// PID_PARTICIPANT_GUID and PID_SENTINEL (RTPS 2.5 §9.6.3).
const PARTICIPANT_GUID: u16 = 0x0050;
const SENTINEL: u16 = 0x0001;
