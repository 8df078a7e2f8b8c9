//! Permissions document: which topics a subject may publish, subscribe and relay
//! (DDS Security 1.1 §9.4.1.3). This module parses; [`access_control`] decides.

pub mod access_control;

use std::sync::Arc;

use crate::date::{UnixTime, Validity};
use crate::diagnostic::Diagnostic;
use crate::document::{DocumentSource, DomainSet, Element};
use crate::expression::Expression;
use crate::governance::expression;
use crate::subject::SubjectName;

/// A permissions document.
#[derive(Debug, Clone)]
pub struct Permissions {
    /// The file; for a peer's document, the peer.
    pub file: Arc<str>,
    /// The grants of all subjects.
    pub grants: Vec<Grant>,
}

/// The rules of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Line in the file.
    pub line: u32,
    /// Name for messages.
    pub name: String,
    /// The owner of the certificates to which the grant applies.
    pub subject: SubjectName,
    /// Its validity period.
    pub validity: Validity,
    /// The first rule that applies decides.
    pub rules: Vec<Rule>,
    /// The effect where no rule applies.
    pub default: Effect,
    /// Line of the `default` element, from 1.
    pub default_line: u32,
}

/// Effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// `allow_rule`, `ALLOW`
    Allow,
    /// `deny_rule`, `DENY`
    Deny,
}

/// A rule of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Line in the file.
    pub line: u32,
    /// Whether it allows or denies.
    pub effect: Effect,
    /// The domain ids to which the rule applies.
    pub domains: DomainSet,
    /// Criteria for publishers.
    pub publish: Vec<Criteria>,
    /// Criteria for subscribers.
    pub subscribe: Vec<Criteria>,
    /// Criteria for relays.
    pub relay: Vec<Criteria>,
}

/// The endpoints that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criteria {
    /// Line in the file.
    pub line: u32,
    /// Expressions for their topics' DDS names.
    pub topics: Vec<Expression>,
    /// Expressions for their partitions; see [`access_control`] for an empty list.
    pub partitions: Vec<Expression>,
    /// Their data tags, name and value.
    pub tags: Vec<(String, String)>,
}

impl Permissions {
    /// Parses a document. Every unknown, missing or malformed element is an error.
    /// A signed file is read by [`SignedDocument`](crate::smime::SignedDocument)
    /// first.
    pub fn read(source: DocumentSource<'_>) -> Result<Self, Diagnostic> {
        source.read("dds", |root| {
            let permissions = root.fields(&["permissions"])?.one("permissions")?;
            let grants = permissions
                .fields(&["grant"])?
                .all("grant")
                .iter()
                .map(grant)
                .collect::<Result<Vec<_>, _>>()?;
            if grants.is_empty() {
                return Err(permissions.fault("", "there is no <grant>", "add one per subject"));
            }
            Ok(Self {
                file: source.file.into(),
                grants,
            })
        })
    }

    /// The grant of a certificate's subject.
    pub fn grant(&self, subject: &SubjectName) -> Option<&Grant> {
        self.grants
            .iter()
            .find(|grant| grant.subject.is_same_subject(subject))
    }
}

fn grant(element: &Element<'_, '_>) -> Result<Grant, Diagnostic> {
    const KNOWN: &[&str] = &[
        "subject_name",
        "validity",
        "allow_rule",
        "deny_rule",
        "default",
    ];
    let name = element
        .attribute("name")
        .ok_or_else(|| element.fault("", "has no attribute name", "write <grant name=\"…\">"))?;
    let fields = element.fields(KNOWN)?;
    let subject = fields.one("subject_name")?;
    let subject_name = SubjectName::parse(subject.text()?).map_err(|reason| {
        let remedy = "write the subject of the certificate, e.g. CN=/talker";
        subject.fault(subject.text().unwrap_or_default(), reason, remedy)
    })?;
    let mut rules = Vec::new();
    // Not by name, because the order matters.
    for inner in element.elements()? {
        match inner.name() {
            "allow_rule" => rules.push(rule(inner, Effect::Allow)?),
            "deny_rule" => rules.push(rule(inner, Effect::Deny)?),
            _ => {}
        }
    }
    let default = fields.one("default")?;
    Ok(Grant {
        line: element.line(),
        name: name.into(),
        subject: subject_name,
        validity: validity(fields.one("validity")?)?,
        rules,
        default: default.value(
            |text| match text {
                "ALLOW" => Some(Effect::Allow),
                "DENY" => Some(Effect::Deny),
                _ => None,
            },
            "ALLOW or DENY",
        )?,
        default_line: default.line(),
    })
}

fn validity(element: Element<'_, '_>) -> Result<Validity, Diagnostic> {
    let fields = element.fields(&["not_before", "not_after"])?;
    let date = |name: &str| {
        fields
            .one(name)?
            .value(UnixTime::parse, "a date as in 2035-12-31T00:00:00Z")
    };
    let validity = Validity {
        not_before: date("not_before")?,
        not_after: date("not_after")?,
    };
    if validity.not_after < validity.not_before {
        return Err(element.fault(
            format!("{} to {}", validity.not_before, validity.not_after),
            "ends before it begins",
            "exchange the dates",
        ));
    }
    Ok(validity)
}

fn rule(element: Element<'_, '_>, effect: Effect) -> Result<Rule, Diagnostic> {
    let fields = element.fields(&["domains", "publish", "subscribe", "relay"])?;
    let all = |name: &str| {
        let found = fields.all(name).iter();
        found.map(criteria).collect::<Result<Vec<_>, _>>()
    };
    Ok(Rule {
        line: element.line(),
        effect,
        domains: DomainSet::read(fields.one("domains")?)?,
        publish: all("publish")?,
        subscribe: all("subscribe")?,
        relay: all("relay")?,
    })
}

fn criteria(element: &Element<'_, '_>) -> Result<Criteria, Diagnostic> {
    let fields = element.fields(&["topics", "partitions", "data_tags"])?;
    let list = |within: Option<Element<'_, '_>>, name: &str| {
        within.map_or(Ok(Vec::new()), |within| {
            let found = within.fields(&[name])?;
            let found: Vec<Expression> = found
                .all(name)
                .iter()
                .map(|element| expression(*element))
                .collect::<Result<_, _>>()?;
            if found.is_empty() {
                Err(within.fault("", "empty", format!("add a <{name}> or remove it")))
            } else {
                Ok(found)
            }
        })
    };
    let tags = match fields.optional("data_tags")? {
        Some(tags) => data_tags(tags)?,
        None => Vec::new(),
    };
    Ok(Criteria {
        line: element.line(),
        topics: list(Some(fields.one("topics")?), "topic")?,
        partitions: list(fields.optional("partitions")?, "partition")?,
        tags,
    })
}

fn data_tags(element: Element<'_, '_>) -> Result<Vec<(String, String)>, Diagnostic> {
    element
        .fields(&["tag"])?
        .all("tag")
        .iter()
        .map(|tag| {
            let fields = tag.fields(&["name", "value"])?;
            let text = |name: &str| fields.one(name)?.text().map(str::to_owned);
            Ok((text("name")?, text("value")?))
        })
        .collect()
}
