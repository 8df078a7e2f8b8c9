//! Zenoh configuration files for the enclaves of a SROS 2 keystore: mutual TLS with the
//! enclaves' certificates, and access control from their permissions.
//!
//! Sessions are clients, so that every message passes a router. The router knows a
//! session by the common name of its certificate and enforces the enclave's permissions.
//! A session has the same rules, so that it can say what it may not do. It accepts only
//! routers: it exchanges nothing with another certificate.
//!
//! The files are Zenoh's own (JSON5), for Pteros and rmw_zenoh_cpp. They hold no secrets:
//! certificates and keys stay where they are, and are named by their paths.

mod access;
mod key_patterns;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::certificate::Certificate;
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::enclave::{Enclave, display_path};
use crate::enclave_name::{enclave_folder, relative};
use crate::keystore::{Keystore, write_public};
use crate::permissions::Effect;

pub use access::{AccessRule, Flow, access_rules};

/// The file of a session, in the folder of its enclave.
pub const SESSION_FILE: &str = "zenoh_session.json5";
/// The file of a router, in the folder of its enclave.
pub const ROUTER_FILE: &str = "zenoh_router.json5";

/// Options of the files.
#[derive(Debug, Clone)]
pub struct ZenohOptions {
    /// ROS_DOMAIN_ID of the sessions.
    pub domain: u32,
    /// The enclaves of routers.
    pub routers: Vec<String>,
    /// The enclaves of sessions; all others if empty.
    pub sessions: Vec<String>,
    /// Endpoints at which a router listens.
    pub listen: Vec<String>,
    /// Endpoints of routers to which a session connects.
    pub connect: Vec<String>,
    /// Where the keystore lies on the hosts that use the files.
    pub keystore_path: PathBuf,
}

/// The files, not written yet.
#[derive(Debug)]
pub struct ZenohFiles {
    /// Path and content of each.
    pub files: Vec<(PathBuf, String)>,
    /// Notes for the operator.
    pub warnings: Vec<Diagnostic>,
}

/// An enclave that can be used.
struct Member {
    name: String,
    common_name: String,
    enclave: Enclave,
}

/// Settings of sessions and routers of rmw_zenoh_cpp, path by path below their group.
const SCOUTING: &str = "scouting: {
    multicast: { enabled: false },
    gossip: {
      enabled: true,
      autoconnect_strategy: { peer: { to_router: \"always\", to_peer: \"greater-zid\" } },
    },
  },
  timestamping: { enabled: true },
  queries_default_timeout: 600000,";
const TRANSPORT: &str = "unicast: {
      open_timeout: 60000,
      accept_timeout: 60000,
      accept_pending: 10000,
      max_sessions: 10000,
    },
    shared_memory: { enabled: false },";
/// How long a message that may not be dropped waits for space, microseconds.
const BLOCK_TIME_OF_SESSION: u32 = 60_000_000;
/// Shorter, so that one slow link does not hold up for long what a router has for others.
const BLOCK_TIME_OF_ROUTER: u32 = 5_000_000;

/// How long a session that opens looks for a router, milliseconds. Zenoh repeats the
/// first look, so a router that starts at the same time is found.
const CONNECT_MILLISECONDS: u32 = 5_000;

/// Makes the files for the enclaves of a keystore. Reads files, and writes none.
///
/// # Errors
/// All faults of the enclaves that are asked for: one that is missing, cannot be read, is
/// not signed by the keystore's authorities, or has expired. Permissions that Zenoh
/// cannot express are a fault, too. A revoked enclave is one only if it is asked for by
/// name; else it gets no file and no rights.
pub fn zenoh_files(
    keystore: &Keystore,
    options: &ZenohOptions,
    now: UnixTime,
) -> Result<ZenohFiles, Vec<Diagnostic>> {
    let root = keystore.root();
    let known = keystore.enclaves().map_err(|fault| vec![fault])?;
    let others = known.iter().filter(|name| !options.routers.contains(name));
    let asked = !options.sessions.is_empty();
    let names: Vec<&String> = if asked {
        options.sessions.iter().collect()
    } else {
        others.collect()
    };
    let mut faults = Vec::new();
    let mut warnings = Vec::new();
    let mut members = Vec::new();
    let routers = options.routers.iter().map(|name| (name, true, true));
    let sessions = names.into_iter().map(|name| (name, false, asked));
    let mut authority: Option<Certificate> = None;
    for (name, is_router, is_named) in routers.chain(sessions) {
        match keystore.is_revoked(name) {
            Ok(false) => {}
            Ok(true) if is_named => {
                faults.push(revoked(root, name, "was revoked"));
                continue;
            }
            Ok(true) => {
                let reason = "is revoked: it gets no file and no rights";
                warnings.push(revoked(root, name, reason));
                continue;
            }
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        }
        match member(root, name, now, &mut authority) {
            Ok(member) => members.push((member, is_router)),
            Err(found) => faults.extend(found),
        }
    }
    match renewed(keystore, &known) {
        Ok(warning) => warnings.extend(warning),
        Err(fault) => faults.push(fault),
    }
    faults.extend(same_names(&members));
    let mut subjects = Vec::new();
    for (member, is_router) in &members {
        if *is_router {
            continue;
        }
        match rules_of(member, options.domain) {
            Ok(rules) => subjects.push((member, rules)),
            Err(fault) => faults.push(fault),
        }
        warnings.extend(notes(member, options.domain));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let routers: Vec<&str> = members
        .iter()
        .filter(|(_, is_router)| *is_router)
        .map(|(member, _)| member.common_name.as_str())
        .collect();
    let path = |member: &Member, file| member.enclave.folder.join(file);
    let mut files = Vec::new();
    for (member, _) in members.iter().filter(|(_, is_router)| *is_router) {
        let text = router_file(member, &routers, &subjects, options);
        files.push((path(member, ROUTER_FILE), text));
    }
    for (member, rules) in &subjects {
        let text = session_file(member, &routers, rules, options);
        files.push((path(member, SESSION_FILE), text));
    }
    Ok(ZenohFiles { files, warnings })
}

/// The folder of an enclave on the hosts that use the files.
fn used_folder(member: &Member, options: &ZenohOptions) -> PathBuf {
    let root = options.keystore_path.join("enclaves");
    match relative(&member.name) {
        Ok(words) if !words.as_os_str().is_empty() => root.join(words),
        _ => root,
    }
}

impl ZenohFiles {
    /// Writes all of them, each atomically. Everyone may read them.
    ///
    /// # Errors
    /// A file that cannot be written. Those before it are written.
    pub fn write(&self) -> Result<(), Diagnostic> {
        let mut files = self.files.iter();
        files.try_for_each(|(path, text)| write_public(path, text))
    }

    /// The files that exist with another content.
    pub fn existing(&self) -> Vec<&Path> {
        let differs = |path: &Path, text: &str| {
            let is_there = std::fs::symlink_metadata(path).is_ok();
            is_there && !std::fs::read(path).is_ok_and(|own| own == text.as_bytes())
        };
        let files = self.files.iter();
        files
            .filter(|(path, text)| differs(path, text))
            .map(|(path, _)| path.as_path())
            .collect()
    }
}

fn member(
    root: &Path,
    name: &str,
    now: UnixTime,
    authority: &mut Option<Certificate>,
) -> Result<Member, Vec<Diagnostic>> {
    let folder = enclave_folder(root, name).map_err(|fault| vec![fault])?;
    let enclave = Enclave::load(&folder, now)?;
    let fault = |reason: &str, remedy: &str| {
        let file = display_path(&folder.join("cert.pem"));
        vec![Diagnostic::new(file, "certificate", "", reason, remedy)]
    };
    let own = &enclave.identity_authority.certificate;
    if authority.get_or_insert_with(|| own.clone()) != own {
        return Err(fault(
            "is of another identity CA than those of the enclaves before it",
            "use one keystore for all enclaves that communicate",
        ));
    }
    let leaf = enclave.identity.chain.first();
    let common_name = leaf.and_then(|leaf| leaf.subject().common_name());
    let common_name = common_name.map(str::to_owned).ok_or_else(|| {
        fault(
            "has no common name, by which Zenoh knows it",
            "create it with `pteros security create_enclave`",
        )
    })?;
    Ok(Member {
        name: name.to_owned(),
        common_name,
        enclave,
    })
}

/// Two enclaves with one common name would have the rights of both.
fn same_names(members: &[(Member, bool)]) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for (index, (member, _)) in members.iter().enumerate() {
        let before = members.iter().take(index);
        let mut same = before.filter(|(one, _)| one.common_name == member.common_name);
        if let Some((other, _)) = same.next() {
            faults.push(Diagnostic::new(
                display_path(&member.enclave.folder.join("cert.pem")),
                "common name",
                &member.common_name,
                format!("is also that of the enclave {}", other.name),
                "name each enclave once, and give each a certificate of its own",
            ));
        }
    }
    faults
}

fn rules_of(member: &Member, domain: u32) -> Result<Vec<AccessRule>, Diagnostic> {
    let access = member.enclave.access(domain)?;
    let file = &member.enclave.permissions.file;
    access_rules(access.grant(), file, &member.name, domain)
}

/// Rules of governance and permissions that Zenoh does not enforce.
fn notes(member: &Member, domain: u32) -> Vec<Diagnostic> {
    let mut notes = Vec::new();
    let Ok(access) = member.enclave.access(domain) else {
        return notes;
    };
    let topics = &access.domain_rule().topics;
    let is_plain = topics.first().is_some_and(|first| {
        first.topic.is_everything() && first.read_access_control && first.write_access_control
    });
    if !is_plain {
        notes.push(Diagnostic::new(
            &*member.enclave.governance.file,
            "<topic_access_rules>",
            "",
            "does not count on Zenoh: the permissions alone decide",
            "allow in the permissions what governance leaves open",
        ));
    }
    let grant = access.grant();
    let file = &*member.enclave.permissions.file;
    let has_deny = grant.rules.iter().find(|rule| rule.effect == Effect::Deny);
    if let Some(rule) = has_deny {
        let reason = "denies topics by name, while a hostile process may send to a Zenoh wildcard \
                      that other enclaves may receive";
        let remedy = "allow single topics where that matters";
        let note = Diagnostic::new(file, "<deny_rule>", "", reason, remedy);
        notes.push(note.at_line(rule.line));
    }
    let leaf = member.enclave.identity.chain.first();
    if leaf.is_some_and(|leaf| grant.validity.not_after < leaf.validity().not_after) {
        let reason = "ends before the certificate, and Zenoh knows only the end of certificates";
        let remedy = "run this command again by then";
        let ends = grant.validity.not_after.to_string();
        notes.push(Diagnostic::new(file, "<not_after>", ends, reason, remedy).at_line(grant.line));
    }
    notes
}

fn revoked(root: &Path, name: &str, reason: &str) -> Diagnostic {
    Diagnostic::new(
        display_path(root),
        "enclave",
        name,
        reason,
        "create an enclave with another name; a renewed one shares its rights with the revoked \
         certificate",
    )
}

/// A warning if revoked certificates may be those of enclaves that were renewed.
fn renewed(keystore: &Keystore, known: &[String]) -> Result<Option<Diagnostic>, Diagnostic> {
    let count = keystore.revoked_count()?;
    let is_revoked = |name: &&String| keystore.is_revoked(name).unwrap_or(false);
    let gone = count.saturating_sub(known.iter().filter(is_revoked).count());
    Ok((gone > 0).then(|| {
        Diagnostic::new(
            display_path(&keystore.root().join("public/crl.pem")),
            "revocation list",
            gone.to_string(),
            "certificates were revoked and replaced or removed. Zenoh knows an enclave by its \
             common name: a revoked certificate has the rights of the one that replaced it",
            "give such an enclave another name, or create a new keystore",
        )
    }))
}

fn router_file(
    member: &Member,
    routers: &[&str],
    subjects: &[(&Member, Vec<AccessRule>)],
    options: &ZenohOptions,
) -> String {
    let mut control = AccessControlText::default();
    control.add("routers", routers, &access::router_rules(options.domain));
    for (member, rules) in subjects {
        control.add(&member.name, &[&member.common_name], rules);
    }
    let listen = strings(options.listen.iter());
    format!(
        "{}{{\n  mode: \"router\",\n  listen: {{ endpoints: {listen} }},\n  {SCOUTING}\n{}{}}}\n",
        header("router", member, options.domain),
        transport(&used_folder(member, options), BLOCK_TIME_OF_ROUTER),
        control.finish()
    )
}

/// With the rules that the router has for the session, so that the session can say what
/// it may not do.
fn session_file(
    member: &Member,
    routers: &[&str],
    rules: &[AccessRule],
    options: &ZenohOptions,
) -> String {
    let own: Vec<AccessRule> = rules.iter().map(AccessRule::of_session).collect();
    let mut control = AccessControlText::default();
    control.add("routers", routers, &own);
    let connect = strings(options.connect.iter());
    format!(
        "{}{{\n  mode: \"client\",\n  connect: {{\n    endpoints: {connect},\n    timeout_ms: \
         {CONNECT_MILLISECONDS},\n  }},\n  {SCOUTING}\n{}{}}}\n",
        header("session", member, options.domain),
        transport(&used_folder(member, options), BLOCK_TIME_OF_SESSION),
        control.finish()
    )
}

fn header(what: &str, member: &Member, domain: u32) -> String {
    format!(
        "// Zenoh {what} of the enclave {}, domain {domain}, written by\n\
         // `pteros security create_zenoh_config`. Write it again after a change of the keystore.\n",
        member.name
    )
}

fn transport(folder: &Path, block_time: u32) -> String {
    let file = |name: &str| json_string(&display_path(&folder.join(name)));
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let authority = file("identity_ca.cert.pem");
    format!(
        "  transport: {{\n    {TRANSPORT}\n    link: {{\n      tx: {{\n        \
         lease: 60000,\n        keep_alive: 2,\n        queue: {{ congestion_control: {{ block: {{ \
         wait_before_close: {block_time} }} }} }},\n      }},\n      protocols: [\"tls\"],\n      \
         tls: {{\n        root_ca_certificate: {authority},\n        listen_private_key: {key},\n        \
         listen_certificate: {certificate},\n        connect_private_key: {key},\n        \
         connect_certificate: {certificate},\n        enable_mtls: true,\n        \
         // Certificates of SROS 2 name enclaves, not hosts. Access control checks the name.\n        \
         verify_name_on_connect: false,\n        close_link_on_expiration: true,\n      }},\n    }},\n  \
         }},\n"
    )
}

#[derive(Default)]
struct AccessControlText {
    rules: String,
    subjects: String,
    policies: String,
}

impl AccessControlText {
    fn add(&mut self, id: &str, common_names: &[&str], rules: &[AccessRule]) {
        let mut ids = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let rule_id = format!("{id} {}", index.saturating_add(1));
            let permission = match rule.effect {
                Effect::Allow => "allow",
                Effect::Deny => "deny",
            };
            let messages = strings(rule.messages.iter());
            let _ = write!(
                self.rules,
                "      {{\n        id: {}, permission: \"{permission}\", flows: [\"{}\"],\n        \
                 messages: {messages},\n        key_exprs: {},\n      }},\n",
                json_string(&rule_id),
                rule.flow.as_str(),
                strings(rule.keys.iter()),
            );
            ids.push(rule_id);
        }
        let id = json_string(id);
        let names = strings(common_names.iter());
        let _ = writeln!(
            self.subjects,
            "      {{ id: {id}, cert_common_names: {names}, link_protocols: [\"tls\"] }},"
        );
        let ids = strings(ids.iter());
        let _ = writeln!(self.policies, "      {{ rules: {ids}, subjects: [{id}] }},");
    }

    fn finish(self) -> String {
        format!(
            "  access_control: {{\n    enabled: true,\n    default_permission: \"deny\",\n    rules: \
             [\n{}    ],\n    subjects: [\n{}    ],\n    policies: [\n{}    ],\n  }},\n",
            self.rules, self.subjects, self.policies
        )
    }
}

fn strings<T: AsRef<str>>(all: impl Iterator<Item = T>) -> String {
    let all: Vec<String> = all.map(|text| json_string(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}

fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
