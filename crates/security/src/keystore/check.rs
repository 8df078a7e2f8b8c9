//! What is wrong with a keystore, and what is weak in it: everything that
//! keeps an enclave from being loaded, and habits that undo its protection.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Keystore;
use crate::date::UnixTime;
use crate::document::Domains;
use crate::enclave::{Enclave, shown};
use crate::fault::Fault;
use crate::governance::{DomainRule, Governance, PayloadProtection, Protection};
use crate::permissions::{Effect, Grant};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, but protects less than it seems to.
    Weak,
    /// An enclave cannot be used.
    Broken,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// What, where, and what to do.
    pub fault: Fault,
}

/// Looks at a keystore, or at the part of one that a robot has: its private
/// folder may be missing, and should be there.
pub fn check(root: &Path, now: UnixTime) -> Result<Vec<Finding>, Fault> {
    let mut findings = Vec::new();
    let keystore = Keystore { root: root.into() };
    let names = keystore.enclaves()?;
    if names.is_empty() {
        return Err(Fault::new(
            shown(&root.join("enclaves")),
            "keystore",
            "",
            "has no enclaves",
            "make one with `pteros security create_enclave`",
        ));
    }
    private_keys(root, &mut findings);
    for name in names {
        let folder = keystore.folder(&name)?;
        match Enclave::load(&folder, now) {
            Ok(enclave) => {
                weak(&mut findings, enclave.warnings.iter().cloned());
                weak(&mut findings, governance(&enclave.governance));
                for grant in &enclave.permissions.grants {
                    weak(&mut findings, permissions(&enclave.permissions.file, grant));
                }
            }
            Err(faults) => findings.extend(faults.into_iter().map(|fault| Finding {
                severity: Severity::Broken,
                fault,
            })),
        }
    }
    // The governance is every enclave's, by links of different names.
    let mut told: Vec<Finding> = Vec::new();
    for finding in findings {
        let same = |known: &Finding| {
            known.fault.reason == finding.fault.reason
                && known.fault.line == finding.fault.line
                && same_file(&known.fault.file, &finding.fault.file)
        };
        if !told.iter().any(same) {
            told.push(finding);
        }
    }
    told.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(told)
}

fn weak(findings: &mut Vec<Finding>, faults: impl IntoIterator<Item = Fault>) {
    findings.extend(faults.into_iter().map(|fault| Finding {
        severity: Severity::Weak,
        fault,
    }));
}

fn same_file(one: &str, other: &str) -> bool {
    one == other
        || match (fs::canonicalize(one), fs::canonicalize(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}

/// Who holds an authority's key holds everything.
fn private_keys(root: &Path, findings: &mut Vec<Finding>) {
    let folder = root.join("private");
    let Ok(entries) = fs::read_dir(&folder) else {
        return;
    };
    weak(
        findings,
        [Fault::new(
            shown(&folder),
            "authorities",
            "",
            "their private keys lie beside the enclaves",
            "copy only the folder of its enclave to a robot, never this one",
        )],
    );
    for entry in entries.flatten() {
        let Ok(about) = fs::metadata(entry.path()) else {
            continue;
        };
        let mode = about.permissions().mode() & 0o777;
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if about.is_file() && !is_link && mode & 0o077 != 0 {
            let reason = format!("{mode:04o}: others than its owner may read or change it");
            let file = shown(&entry.path());
            weak(
                findings,
                [Fault::new(file, "mode", "", reason, "chmod 600")],
            );
        }
    }
}

/// Cyclone DDS (0.10 to 11) reads no document that names a higher domain, and its
/// nodes do not start then. Others, and the standard's ports, have 232.
const CYCLONE_DOMAIN_MAX: u64 = 230;

fn domains(file: &str, line: u32, domains: &Domains) -> Option<Fault> {
    let named = domains.named_beyond(CYCLONE_DOMAIN_MAX)?;
    let reason = format!(
        "Cyclone DDS refuses the whole file: it knows no domain beyond {CYCLONE_DOMAIN_MAX}"
    );
    let remedy = "use a lower domain where nodes on Cyclone DDS take part";
    let fault = Fault::new(file, "<domains>", named.to_string(), reason, remedy);
    Some(fault.at_line(line))
}

fn governance(governance: &Governance) -> Vec<Fault> {
    let of_domains = |rule: &DomainRule| domains(&governance.file, rule.line, &rule.domains);
    let mut faults: Vec<Fault> = governance.rules.iter().filter_map(of_domains).collect();
    let mut add = |line: u32, field: &str, value: &str, reason: &str, remedy: &str| {
        let fault = Fault::new(&*governance.file, field, value, reason, remedy);
        faults.push(fault.at_line(line));
    };
    for rule in &governance.rules {
        if rule.allow_unauthenticated_participants {
            let reason = "strangers are let in where a topic is not protected";
            add(
                rule.line,
                "<allow_unauthenticated_participants>",
                "true",
                reason,
                "write false",
            );
        }
        if !rule.join_access_control {
            let reason = "whoever has a certificate may join, whatever the permissions say";
            add(
                rule.line,
                "<enable_join_access_control>",
                "false",
                reason,
                "write true",
            );
        }
        for (field, kind, reason) in [
            (
                "<discovery_protection_kind>",
                rule.discovery,
                "topics, types and policies of secured endpoints can be read, or forged",
            ),
            (
                "<liveliness_protection_kind>",
                rule.liveliness,
                "signs of life can be forged",
            ),
        ] {
            if kind == Protection::None {
                add(rule.line, field, "NONE", reason, "write ENCRYPT");
            }
        }
        match rule.rtps {
            Protection::None => add(
                rule.line,
                "<rtps_protection_kind>",
                "NONE",
                "submessages that are not protected themselves can be forged",
                "write ENCRYPT",
            ),
            Protection::Sign | Protection::SignWithOriginAuthentication => add(
                rule.line,
                "<rtps_protection_kind>",
                rule.rtps.as_str(),
                "names of nodes and who talks to whom can be read (CVE-2019-19625)",
                "write ENCRYPT",
            ),
            Protection::Encrypt | Protection::EncryptWithOriginAuthentication => {}
        }
        for topic in &rule.topics {
            let expression = topic.topic.as_str();
            if !topic.read_access_control || !topic.write_access_control {
                let reason = "everybody with a certificate may read or write it, or join by it";
                add(
                    topic.line,
                    "<topic_rule>",
                    expression,
                    reason,
                    "turn access control on",
                );
            }
            let open = topic.data != PayloadProtection::Encrypt && !topic.metadata.encrypts();
            if open && !rule.rtps.encrypts() {
                let reason = "its samples can be read";
                add(
                    topic.line,
                    "<topic_rule>",
                    expression,
                    reason,
                    "set data_protection_kind to ENCRYPT",
                );
            }
        }
        if rule.topic("rt/\u{fffd}").is_none() {
            let reason = "topics that no topic_rule names are denied; is that meant?";
            add(
                rule.line,
                "<topic_access_rules>",
                "",
                reason,
                "add a last rule for * otherwise",
            );
        }
    }
    faults
}

fn permissions(file: &str, grant: &Grant) -> Vec<Fault> {
    let mut faults = Vec::new();
    if grant.default == Effect::Allow {
        let reason = "what no rule names is allowed";
        let fault = Fault::new(file, "<default>", "ALLOW", reason, "write DENY");
        faults.push(fault.at_line(grant.default_line));
    }
    let of_domains = grant.rules.iter();
    faults.extend(of_domains.filter_map(|rule| domains(file, rule.line, &rule.domains)));
    for rule in grant
        .rules
        .iter()
        .filter(|rule| rule.effect == Effect::Allow)
    {
        let criteria = rule.publish.iter().chain(&rule.subscribe);
        let mut topics = criteria.flat_map(|criteria| &criteria.topics);
        let everything = ["*", "rt/*", "rt*", "?*"];
        if let Some(wide) = topics.find(|topic| everything.contains(&topic.as_str())) {
            let fault = Fault::new(
                file,
                "<topic>",
                wide.as_str(),
                "allows every topic",
                "name topics: `pteros security generate_policy`, then `create_permission`",
            );
            faults.push(fault.at_line(rule.line));
        }
    }
    faults
}
