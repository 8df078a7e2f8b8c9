//! The governance document: what is protected in which domain, and how
//! (DDS Security 1.1 §9.4.1.2). Of DDS Security 1.2 the switches for key
//! revisions and pre-shared keys are read, and must be off.

use std::sync::Arc;

use crate::document::{Domains, Element, Source};
use crate::expression::Expression;
use crate::fault::Fault;

/// A governance document.
#[derive(Debug, Clone)]
pub struct Governance {
    /// The file, or which peer sent it.
    pub file: Arc<str>,
    /// Its rules; the first that names a domain holds there.
    pub rules: Vec<DomainRule>,
}

/// How a whole message or submessage is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Not at all.
    None,
    /// Signed: it cannot be changed unnoticed.
    Sign,
    /// Encrypted and signed.
    Encrypt,
    /// Signed, and each receiver can tell which participant did it.
    SignWithOriginAuthentication,
    /// Encrypted, and each receiver can tell which participant did it.
    EncryptWithOriginAuthentication,
}

/// How the payload of a sample is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadProtection {
    /// Not at all.
    None,
    /// Signed.
    Sign,
    /// Encrypted and signed.
    Encrypt,
}

/// What holds in some domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRule {
    /// Line in the file.
    pub line: u32,
    /// The domains.
    pub domains: Domains,
    /// Whether participants that do not authenticate may still discover and
    /// match what is not protected.
    pub allow_unauthenticated_participants: bool,
    /// Whether participants need permission to join.
    pub join_access_control: bool,
    /// How secured discovery is protected.
    pub discovery: Protection,
    /// How liveliness messages are protected.
    pub liveliness: Protection,
    /// How every message is protected as a whole.
    pub rtps: Protection,
    /// Rules for topics; the first whose expression matches holds.
    pub topics: Vec<TopicRule>,
}

/// What holds for some topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRule {
    /// Line in the file.
    pub line: u32,
    /// Which topics, by their DDS names.
    pub topic: Expression,
    /// Whether its endpoints are announced by secured discovery.
    pub discovery_protected: bool,
    /// Whether its writers' liveliness goes through the secured channel.
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
    /// Reads a document. Every element that is unknown, missing or malformed
    /// is a fault; one that was signed is read by
    /// [`SignedDocument`](crate::smime::SignedDocument) first.
    pub fn read(source: Source<'_>) -> Result<Self, Fault> {
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

    /// What holds in this domain.
    pub fn rule(&self, domain: u32) -> Option<&DomainRule> {
        self.rules.iter().find(|rule| rule.domains.contains(domain))
    }
}

impl DomainRule {
    /// What holds for the topic with this DDS name.
    pub fn topic(&self, name: &str) -> Option<&TopicRule> {
        self.topics.iter().find(|rule| rule.topic.matches(name))
    }
}

impl Protection {
    /// As the document writes it.
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

    /// Whether anything is protected.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether it is encrypted, not only signed.
    pub const fn encrypts(self) -> bool {
        matches!(self, Self::Encrypt | Self::EncryptWithOriginAuthentication)
    }

    /// Whether each receiver gets a code of its own.
    pub const fn authenticates_origin(self) -> bool {
        matches!(
            self,
            Self::SignWithOriginAuthentication | Self::EncryptWithOriginAuthentication
        )
    }
}

impl PayloadProtection {
    /// As the document writes it.
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

fn domain_rule(element: &Element<'_, '_>) -> Result<DomainRule, Fault> {
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
            "keys are not revised here (that is DDS Security 1.2)",
            "write false, and restart what shall have new keys",
        ));
    }
    if let Some(shared) = fields.optional("rtps_psk_protection_kind")?
        && protection(shared)?.is_on()
    {
        return Err(shared.fault(
            shared.text()?,
            "there are no pre-shared keys here (that is DDS Security 1.2)",
            "write NONE",
        ));
    }
    let topics = fields.one("topic_access_rules")?;
    Ok(DomainRule {
        line: element.line(),
        domains: Domains::read(fields.one("domains")?)?,
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

fn topic_rule(element: &Element<'_, '_>) -> Result<TopicRule, Fault> {
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

fn protection(element: Element<'_, '_>) -> Result<Protection, Fault> {
    element.value(
        Protection::of,
        "NONE, SIGN, ENCRYPT, SIGN_WITH_ORIGIN_AUTHENTICATION or \
         ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
    )
}

/// An expression of topics or partitions.
pub(crate) fn expression(element: Element<'_, '_>) -> Result<Expression, Fault> {
    let text = element.text()?;
    Expression::parse(text).map_err(|reason| {
        element.fault(text, reason, "write a name, or an expression with * ? [ ]")
    })
}
