//! Keystore check: problems that prevent an enclave from being loaded, and
//! weaknesses in its protection.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Keystore;
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::document::DomainSet;
use crate::enclave::{Enclave, display_path};
use crate::governance::{DomainRule, Governance, PayloadProtection, Protection};
use crate::permissions::{Effect, Grant};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, but protects less than it seems to.
    Weak,
    /// An enclave cannot be used.
    Broken,
}

/// One problem of a keystore, found by a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it weakens the protection, or stops an enclave.
    pub severity: Severity,
    /// The problem and its remedy.
    pub fault: Diagnostic,
}

/// Checks a keystore, or the part of one on a robot, where the private folder
/// should be missing.
pub fn check(root: &Path, now: UnixTime) -> Result<Vec<Finding>, Diagnostic> {
    let mut findings = Vec::new();
    let keystore = Keystore { root: root.into() };
    let names = keystore.enclaves()?;
    if names.is_empty() {
        return Err(Diagnostic::new(
            display_path(&root.join("enclaves")),
            "keystore",
            "",
            "has no enclaves",
            "create one with `pteros security create_enclave`",
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
    // All enclaves link to one governance file, under different names.
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

fn weak(findings: &mut Vec<Finding>, faults: impl IntoIterator<Item = Diagnostic>) {
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

/// The key of an authority gives all rights.
fn private_keys(root: &Path, findings: &mut Vec<Finding>) {
    let folder = root.join("private");
    let Ok(entries) = fs::read_dir(&folder) else {
        return;
    };
    weak(
        findings,
        [Diagnostic::new(
            display_path(&folder),
            "authorities",
            "",
            "their private keys are in the same keystore as the enclaves",
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
            let reason = format!("{mode:04o}: other users may read or change it");
            let file = display_path(&entry.path());
            weak(
                findings,
                [Diagnostic::new(file, "mode", "", reason, "chmod 600")],
            );
        }
    }
}

/// Cyclone DDS (0.10 to 11) rejects a document with a higher domain, and its nodes
/// then do not start. Other stacks, and the standard's ports, allow 232.
const CYCLONE_DOMAIN_MAX: u64 = 230;

fn domains(file: &str, line: u32, domains: &DomainSet) -> Option<Diagnostic> {
    let named = domains.has_id_beyond(CYCLONE_DOMAIN_MAX)?;
    let reason = format!(
        "Cyclone DDS rejects the whole file: it supports domains up to {CYCLONE_DOMAIN_MAX}"
    );
    let remedy = "use a lower domain for nodes on Cyclone DDS";
    let fault = Diagnostic::new(file, "<domains>", named.to_string(), reason, remedy);
    Some(fault.at_line(line))
}

fn governance(governance: &Governance) -> Vec<Diagnostic> {
    let of_domains = |rule: &DomainRule| domains(&governance.file, rule.line, &rule.domains);
    let mut faults: Vec<Diagnostic> = governance.rules.iter().filter_map(of_domains).collect();
    let mut add = |line: u32, field: &str, value: &str, reason: &str, remedy: &str| {
        let fault = Diagnostic::new(&*governance.file, field, value, reason, remedy);
        faults.push(fault.at_line(line));
    };
    for rule in &governance.rules {
        if rule.allow_unauthenticated_participants {
            let reason = "unauthenticated participants may use unprotected topics";
            add(
                rule.line,
                "<allow_unauthenticated_participants>",
                "true",
                reason,
                "write false",
            );
        }
        if !rule.join_access_control {
            let reason = "every owner of a certificate may join, regardless of the permissions";
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
                "liveliness assertions can be forged",
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
                "submessages without their own protection can be forged",
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
                let reason = "every owner of a certificate may read or write it, or join by it";
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

fn permissions(file: &str, grant: &Grant) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    if grant.default == Effect::Allow {
        let reason = "everything without a rule is allowed";
        let fault = Diagnostic::new(file, "<default>", "ALLOW", reason, "write DENY");
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
            let fault = Diagnostic::new(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_is_no_other_file() {
        assert!(same_file("/no/such/a", "/no/such/a"));
        assert!(!same_file("/no/such/a", "/no/such/b"));
        assert!(!same_file("/no/such/a", "/"));
        assert!(same_file("/", "/."), "two names of one folder");
    }
}
