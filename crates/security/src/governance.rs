//! Governance document: what is protected in which domain, and how (DDS Security
//! 1.1 §9.4.1.2). The DDS Security 1.2 switches for key revisions and pre-shared
//! keys are read, and must be off.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::document::{DocumentSource, DomainSet, Element};
use crate::expression::Expression;

/// A governance document.
#[derive(Debug, Clone)]
pub struct Governance {
    /// The file; for a peer's document, the peer.
    pub file: Arc<str>,
    /// Its domain rules; the first one that names a domain applies.
    pub rules: Vec<DomainRule>,
}

/// How a whole message or submessage is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Sent in the clear.
    None,
    /// Signed: changes are detected.
    Sign,
    /// Encrypted and signed.
    Encrypt,
    /// Signed, and each receiver can authenticate the origin.
    SignWithOriginAuthentication,
    /// Encrypted, and each receiver can authenticate the origin.
    EncryptWithOriginAuthentication,
}

/// How the payload of a sample is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadProtection {
    /// Sent in the clear.
    None,
    /// Signed: changes are detected, and anyone can read it.
    Sign,
    /// Encrypted and signed.
    Encrypt,
}

/// The rules of some domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRule {
    /// Line in the file.
    pub line: u32,
    /// The domain ids to which the rule applies.
    pub domains: DomainSet,
    /// Whether unauthenticated participants may discover and match unprotected
    /// endpoints.
    pub allow_unauthenticated_participants: bool,
    /// Whether participants need permission to join.
    pub join_access_control: bool,
    /// How secured discovery is protected.
    pub discovery: Protection,
    /// How liveliness messages are protected.
    pub liveliness: Protection,
    /// How every message is protected as a whole.
    pub rtps: Protection,
    /// Topic rules; the first one whose expression matches applies.
    pub topics: Vec<TopicRule>,
}

/// The rules of some topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRule {
    /// Line in the file.
    pub line: u32,
    /// Expression for the DDS names of the topics.
    pub topic: Expression,
    /// Whether secured discovery announces its endpoints.
    pub discovery_protected: bool,
    /// Whether its writers' liveliness uses the secured channel.
    pub liveliness_protected: bool,
    /// Whether reading needs permission.
    pub read_access_control: bool,
    /// Whether writing needs permission.
    pub write_access_control: bool,
    /// How its submessages are protected.
    pub metadata: Protection,
    /// How its payloads are protected.
    pub data: PayloadProtection,
}

impl Governance {
    /// Parses a document. Every unknown, missing or malformed element is an error.
    /// A signed file is read by [`SignedDocument`](crate::smime::SignedDocument)
    /// first.
    pub fn read(source: DocumentSource<'_>) -> Result<Self, Diagnostic> {
        source.read("dds", |root| {
            let rules = root
                .fields(&["domain_access_rules"])?
                .one("domain_access_rules")?;
            let rules = rules
                .fields(&["domain_rule"])?
                .all("domain_rule")
                .iter()
                .map(domain_rule)
                .collect::<Result<Vec<_>, _>>()?;
            if rules.is_empty() {
                return Err(root.fault("", "there is no <domain_rule>", "add one per domain"));
            }
            Ok(Self {
                file: source.file.into(),
                rules,
            })
        })
    }

    /// The rule of this domain.
    pub fn rule(&self, domain: u32) -> Option<&DomainRule> {
        self.rules.iter().find(|rule| rule.domains.contains(domain))
    }
}

impl DomainRule {
    /// The rule of the topic with this DDS name.
    pub fn topic(&self, name: &str) -> Option<&TopicRule> {
        self.topics.iter().find(|rule| rule.topic.matches(name))
    }
}

impl Protection {
    /// The word in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Sign => "SIGN",
            Self::Encrypt => "ENCRYPT",
            Self::SignWithOriginAuthentication => "SIGN_WITH_ORIGIN_AUTHENTICATION",
            Self::EncryptWithOriginAuthentication => "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [
            Self::None,
            Self::Sign,
            Self::Encrypt,
            Self::SignWithOriginAuthentication,
            Self::EncryptWithOriginAuthentication,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }

    /// Whether there is any protection.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether it encrypts, besides signing.
    pub const fn encrypts(self) -> bool {
        matches!(self, Self::Encrypt | Self::EncryptWithOriginAuthentication)
    }

    /// Whether each receiver gets a receiver-specific MAC.
    pub const fn authenticates_origin(self) -> bool {
        matches!(
            self,
            Self::SignWithOriginAuthentication | Self::EncryptWithOriginAuthentication
        )
    }
}

impl PayloadProtection {
    /// The word in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Sign => "SIGN",
            Self::Encrypt => "ENCRYPT",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::None, Self::Sign, Self::Encrypt]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

fn domain_rule(element: &Element<'_, '_>) -> Result<DomainRule, Diagnostic> {
    let fields = element.fields(&[
        "domains",
        "allow_unauthenticated_participants",
        "enable_join_access_control",
        "discovery_protection_kind",
        "liveliness_protection_kind",
        "rtps_protection_kind",
        "rtps_psk_protection_kind",
        "enable_key_revision",
        "topic_access_rules",
    ])?;
    let kind = |name: &str| protection(fields.one(name)?);
    if let Some(revision) = fields.optional("enable_key_revision")?
        && revision.boolean()?
    {
        return Err(revision.fault(
            "true",
            "key revisions are not supported (DDS Security 1.2)",
            "write false, and restart the processes that need new keys",
        ));
    }
    if let Some(shared) = fields.optional("rtps_psk_protection_kind")?
        && protection(shared)?.is_on()
    {
        return Err(shared.fault(
            shared.text()?,
            "pre-shared keys are not supported (DDS Security 1.2)",
            "write NONE",
        ));
    }
    let topics = fields.one("topic_access_rules")?;
    Ok(DomainRule {
        line: element.line(),
        domains: DomainSet::read(fields.one("domains")?)?,
        allow_unauthenticated_participants: fields
            .one("allow_unauthenticated_participants")?
            .boolean()?,
        join_access_control: fields.one("enable_join_access_control")?.boolean()?,
        discovery: kind("discovery_protection_kind")?,
        liveliness: kind("liveliness_protection_kind")?,
        rtps: kind("rtps_protection_kind")?,
        topics: topics
            .fields(&["topic_rule"])?
            .all("topic_rule")
            .iter()
            .map(topic_rule)
            .collect::<Result<Vec<_>, _>>()?,
    })
}

fn topic_rule(element: &Element<'_, '_>) -> Result<TopicRule, Diagnostic> {
    let fields = element.fields(&[
        "topic_expression",
        "enable_discovery_protection",
        "enable_liveliness_protection",
        "enable_read_access_control",
        "enable_write_access_control",
        "metadata_protection_kind",
        "data_protection_kind",
    ])?;
    let flag = |name: &str| fields.one(name)?.boolean();
    Ok(TopicRule {
        line: element.line(),
        topic: expression(fields.one("topic_expression")?)?,
        discovery_protected: flag("enable_discovery_protection")?,
        liveliness_protected: flag("enable_liveliness_protection")?,
        read_access_control: flag("enable_read_access_control")?,
        write_access_control: flag("enable_write_access_control")?,
        metadata: protection(fields.one("metadata_protection_kind")?)?,
        data: fields
            .one("data_protection_kind")?
            .value(PayloadProtection::of, "NONE, SIGN or ENCRYPT")?,
    })
}

fn protection(element: Element<'_, '_>) -> Result<Protection, Diagnostic> {
    element.value(
        Protection::of,
        "NONE, SIGN, ENCRYPT, SIGN_WITH_ORIGIN_AUTHENTICATION or \
         ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
    )
}

/// An expression of topics or partitions.
pub(crate) fn expression(element: Element<'_, '_>) -> Result<Expression, Diagnostic> {
    let text = element.text()?;
    Expression::parse(text).map_err(|reason| {
        element.fault(text, reason, "write a name, or an expression with * ? [ ]")
    })
}
