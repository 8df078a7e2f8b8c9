//! SROS 2 policies: what nodes may do, in ROS names, per enclave. They are read,
//! written, and converted to permissions documents, like SROS 2's own tools do.
//! `xi:include` works as SROS 2's policies use it: the content of a profile in
//! another file (`xpointer(/profile/*)`).

use std::fmt::Write as _;
use std::path::Path;

use crate::date::Validity;
use crate::diagnostic::Diagnostic;
use crate::document::{DocumentSource, Element};
use crate::enclave::{display_path, read_file};
use crate::enclave_name::relative;
use crate::permissions::Effect;

/// A policy file of SROS 2: what the nodes of each enclave may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules of each enclave.
    pub enclaves: Vec<PolicyEnclave>,
}

/// The rules of the nodes of one enclave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyEnclave {
    /// The enclave's name.
    pub path: String,
    /// Its nodes.
    pub profiles: Vec<Profile>,
}

/// The rules of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Namespace of the node.
    pub namespace: String,
    /// Name of the node.
    pub node: String,
    /// Allowed and denied actions.
    pub rules: Vec<PolicyRule>,
}

/// An action that is allowed or denied for some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// Kind of access to the names.
    pub action: PolicyAction,
    /// Allowed or denied.
    pub effect: Effect,
    /// Topics, services or actions: absolute, relative, or private (`~`) names.
    pub names: Vec<String>,
}

/// An action of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyAction {
    /// Publishes a topic.
    Publish,
    /// Subscribes to a topic.
    Subscribe,
    /// Serves a service.
    Reply,
    /// Calls a service.
    Request,
    /// Serves an action.
    Execute,
    /// Calls an action.
    Call,
}

impl Policy {
    /// Reads a policy file.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let content = read_file(path)?;
        let text = String::from_utf8_lossy(&content);
        let file = display_path(path);
        let source = DocumentSource {
            file: &file,
            first_line: 1,
            text: &text,
        };
        source.read("policy", |root| {
            // Policies before version 0.2 have contexts.
            let fields = root.fields(&["enclaves", "contexts"])?;
            let (list, name) = match fields.optional("contexts")? {
                Some(contexts) => (contexts, "context"),
                None => (fields.one("enclaves")?, "enclave"),
            };
            let enclaves = list.fields(&[name])?;
            let enclaves = enclaves.all(name).iter();
            let enclaves = enclaves
                .map(|enclave| read_enclave(enclave, path))
                .collect::<Result<_, _>>()?;
            Ok(Self { enclaves })
        })
    }

    /// The rules of this enclave.
    pub fn enclave(&self, path: &str) -> Option<&PolicyEnclave> {
        self.enclaves.iter().find(|enclave| enclave.path == path)
    }

    /// Allows an action of a node on one more name.
    pub fn allow(
        &mut self,
        enclave: &str,
        namespace: &str,
        node: &str,
        action: PolicyAction,
        name: &str,
    ) {
        let at = position_or_push(
            &mut self.enclaves,
            |known| known.path == enclave,
            || PolicyEnclave {
                path: enclave.into(),
                profiles: Vec::new(),
            },
        );
        let Some(enclave) = at else { return };
        let profile = position_or_push(
            &mut enclave.profiles,
            |known| known.namespace == namespace && known.node == node,
            || Profile {
                namespace: namespace.into(),
                node: node.into(),
                rules: Vec::new(),
            },
        );
        let Some(profile) = profile else { return };
        let known = |rule: &PolicyRule| rule.effect == Effect::Allow && rule.action == action;
        let rule = position_or_push(&mut profile.rules, known, || PolicyRule {
            action,
            effect: Effect::Allow,
            names: Vec::new(),
        });
        if let Some(rule) = rule
            && !rule.names.iter().any(|known| known == name)
        {
            rule.names.push(name.into());
        }
    }

    /// Formats a policy file.
    pub fn to_xml(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        xml.push_str("<policy version=\"0.2.0\">\n  <enclaves>\n");
        for enclave in &self.enclaves {
            let path = escaped(&enclave.path);
            let _ = writeln!(xml, "    <enclave path=\"{path}\">\n      <profiles>");
            for profile in &enclave.profiles {
                let (ns, node) = (escaped(&profile.namespace), escaped(&profile.node));
                let _ = writeln!(xml, "        <profile ns=\"{ns}\" node=\"{node}\">");
                for rule in &profile.rules {
                    let (list, one) = rule.action.elements();
                    let (word, effect) = (rule.action.as_str(), effect(rule.effect));
                    let _ = writeln!(xml, "          <{list} {word}=\"{effect}\">");
                    for name in &rule.names {
                        let name = escaped(name);
                        let _ = writeln!(xml, "            <{one}>{name}</{one}>");
                    }
                    let _ = writeln!(xml, "          </{list}>");
                }
                xml.push_str("        </profile>\n");
            }
            xml.push_str("      </profiles>\n    </enclave>\n");
        }
        xml.push_str("  </enclaves>\n</policy>\n");
        xml
    }
}

impl PolicyEnclave {
    /// Allows everything: SROS 2's default.
    pub fn permissive(path: &str) -> Self {
        use PolicyAction::{Call, Execute, Publish, Reply, Request, Subscribe};
        let rules = [Publish, Subscribe, Reply, Request, Execute, Call]
            .into_iter()
            .map(|action| PolicyRule {
                action,
                effect: Effect::Allow,
                names: vec!["/*".into()],
            })
            .collect();
        Self {
            path: path.into(),
            profiles: vec![Profile {
                namespace: "/".into(),
                node: "default".into(),
                rules,
            }],
        }
    }

    /// The permissions document for this enclave in one domain.
    pub fn permissions(&self, domain: u32, validity: Validity) -> String {
        let name = escaped(&self.path);
        // Escaped as in RFC 4514, because the subject is parsed that way.
        let subject = escaped(&escaped_subject(&self.path));
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <dds xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:noNamespaceSchemaLocation=\"http://www.omg.org/spec/DDS-SECURITY/20170901/\
             omg_shared_ca_permissions.xsd\">\n  <permissions>\n    <grant name=\"{name}\">\n      \
             <subject_name>CN={subject}</subject_name>\n      <validity>\n        \
             <not_before>{}</not_before>\n        <not_after>{}</not_after>\n      </validity>\n",
            validity.not_before, validity.not_after
        );
        for (kind, wanted) in [("deny_rule", Effect::Deny), ("allow_rule", Effect::Allow)] {
            let (mut publish, mut subscribe) = (Vec::new(), Vec::new());
            for profile in &self.profiles {
                for rule in profile.rules.iter().filter(|rule| rule.effect == wanted) {
                    for name in &rule.names {
                        rule.action.dds_topics(
                            &profile.full_name(name),
                            &mut publish,
                            &mut subscribe,
                        );
                    }
                }
            }
            if publish.is_empty() && subscribe.is_empty() {
                continue;
            }
            if wanted == Effect::Allow {
                // The ROS graph: the nodes of each participant.
                publish.push("ros_discovery_info".into());
                subscribe.push("ros_discovery_info".into());
            }
            let _ = write!(
                xml,
                "      <{kind}>\n        <domains>\n          <id>{domain}</id>\n        </domains>\n"
            );
            for (word, topics) in [("publish", &mut publish), ("subscribe", &mut subscribe)] {
                topics.sort();
                topics.dedup();
                if topics.is_empty() {
                    continue;
                }
                let _ = write!(xml, "        <{word}>\n          <topics>\n");
                for topic in topics {
                    let topic = escaped(topic);
                    let _ = writeln!(xml, "            <topic>{topic}</topic>");
                }
                let _ = write!(xml, "          </topics>\n        </{word}>\n");
            }
            let _ = writeln!(xml, "      </{kind}>");
        }
        xml.push_str("      <default>DENY</default>\n    </grant>\n  </permissions>\n</dds>\n");
        xml
    }
}

impl Profile {
    /// The name in the graph, with its leading slash.
    fn full_name(&self, name: &str) -> String {
        let namespace = self.namespace.trim_end_matches('/');
        match name.strip_prefix('~') {
            Some(rest) => format!("{namespace}/{}{rest}", self.node),
            None if name.starts_with('/') => name.into(),
            None => format!("{namespace}/{name}"),
        }
    }
}

impl PolicyAction {
    /// The attribute for this action.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Reply => "reply",
            Self::Request => "request",
            Self::Execute => "execute",
            Self::Call => "call",
        }
    }

    /// The elements for a list of its names and for one.
    const fn elements(self) -> (&'static str, &'static str) {
        match self {
            Self::Publish | Self::Subscribe => ("topics", "topic"),
            Self::Reply | Self::Request => ("services", "service"),
            Self::Execute | Self::Call => ("actions", "action"),
        }
    }

    /// The DDS topics that it publishes and subscribes to.
    fn dds_topics(self, name: &str, publish: &mut Vec<String>, subscribe: &mut Vec<String>) {
        let services = ["cancel_goal", "get_result", "send_goal"];
        let parts = ["feedback", "status"];
        let request = |of: &str| format!("rq{name}/_action/{of}Request");
        let reply = |of: &str| format!("rr{name}/_action/{of}Reply");
        let told = |of: &str| format!("rt{name}/_action/{of}");
        match self {
            Self::Publish => publish.push(format!("rt{name}")),
            Self::Subscribe => subscribe.push(format!("rt{name}")),
            Self::Request => {
                publish.push(format!("rq{name}Request"));
                subscribe.push(format!("rr{name}Reply"));
            }
            Self::Reply => {
                publish.push(format!("rr{name}Reply"));
                subscribe.push(format!("rq{name}Request"));
            }
            Self::Call => {
                publish.extend(services.map(request));
                subscribe.extend(services.map(reply).into_iter().chain(parts.map(told)));
            }
            Self::Execute => {
                publish.extend(services.map(reply).into_iter().chain(parts.map(told)));
                subscribe.extend(services.map(request));
            }
        }
    }
}

fn read_enclave(element: &Element<'_, '_>, path: &Path) -> Result<PolicyEnclave, Diagnostic> {
    let name = attribute(element, "path")?;
    relative(name).map_err(|fault| element.fault(name, &*fault.reason, &*fault.remedy))?;
    let mut profiles = Vec::new();
    let lists = element.fields(&["profiles"])?;
    for list in lists.all("profiles") {
        for profile in list.fields(&["profile", "metadata"])?.all("profile") {
            let mut rules = Vec::new();
            read_rules(profile, path, 0, &mut rules)?;
            profiles.push(Profile {
                namespace: attribute(profile, "ns")?.into(),
                node: attribute(profile, "node")?.into(),
                rules,
            });
        }
    }
    Ok(PolicyEnclave {
        path: name.into(),
        profiles,
    })
}

fn read_rules(
    profile: &Element<'_, '_>,
    path: &Path,
    depth: usize,
    rules: &mut Vec<PolicyRule>,
) -> Result<(), Diagnostic> {
    use PolicyAction::{Call, Execute, Publish, Reply, Request, Subscribe};
    for list in profile.elements()? {
        let (actions, one) = match list.name() {
            "topics" => ([Publish, Subscribe], "topic"),
            "services" => ([Reply, Request], "service"),
            "actions" => ([Execute, Call], "action"),
            "include" => {
                include(&list, path, depth, rules)?;
                continue;
            }
            _ => {
                let known = ["topics", "services", "actions", "xi:include"];
                return Err(list.unknown("profile", &known));
            }
        };
        let names = list
            .fields(&[one])?
            .all(one)
            .iter()
            .map(|name| name.value(|text| (!text.is_empty()).then(|| text.to_owned()), "a name"))
            .collect::<Result<Vec<_>, _>>()?;
        for action in actions {
            let effect = match list.attribute(action.as_str()) {
                None => continue,
                Some("ALLOW") => Effect::Allow,
                Some("DENY") => Effect::Deny,
                Some(other) => {
                    let reason = format!("invalid value of the attribute {}", action.as_str());
                    return Err(list.fault(other, reason, "write ALLOW or DENY"));
                }
            };
            rules.push(PolicyRule {
                action,
                effect,
                names: names.clone(),
            });
        }
    }
    Ok(())
}

fn include(
    element: &Element<'_, '_>,
    path: &Path,
    depth: usize,
    rules: &mut Vec<PolicyRule>,
) -> Result<(), Diagnostic> {
    let href = attribute(element, "href")?;
    if element.attribute("xpointer") != Some("xpointer(/profile/*)") {
        let remedy = "write xpointer=\"xpointer(/profile/*)\", the content of its profile";
        return Err(element.fault(href, "includes something other than a profile", remedy));
    }
    if depth >= INCLUDES {
        let reason = format!("files included more than {INCLUDES} deep");
        return Err(element.fault(href, reason, "does a file include itself?"));
    }
    let path = path.with_file_name("").join(href);
    let content = read_file(&path)?;
    let text = String::from_utf8_lossy(&content);
    let file = display_path(&path);
    let source = DocumentSource {
        file: &file,
        first_line: 1,
        text: &text,
    };
    source.read("profile", |profile| {
        read_rules(&profile, &path, depth.saturating_add(1), rules)
    })
}

fn attribute<'a>(element: &Element<'a, '_>, name: &str) -> Result<&'a str, Diagnostic> {
    element.attribute(name).ok_or_else(|| {
        let remedy = format!("write {name}=\"…\"");
        element.fault("", format!("has no attribute {name}"), remedy)
    })
}

fn position_or_push<T>(
    list: &mut Vec<T>,
    known: impl Fn(&T) -> bool,
    fresh: impl FnOnce() -> T,
) -> Option<&mut T> {
    if !list.iter().any(&known) {
        list.push(fresh());
    }
    list.iter_mut().find(|one| known(one))
}

const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "ALLOW",
        Effect::Deny => "DENY",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn escaped_subject(text: &str) -> String {
    let special = |c: char| matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';');
    let parts = text.chars().map(|c| {
        if special(c) {
            format!("\\{c}")
        } else {
            c.to_string()
        }
    });
    parts.collect()
}

/// Limit of nested includes.
const INCLUDES: usize = 8;
