//! Access decisions from governance and permissions, and the rule that each one
//! names.

use crate::support;

use pteros_security::date::UnixTime;
use pteros_security::diagnostic::Diagnostic;
use pteros_security::document::DocumentSource;
use pteros_security::governance::{Governance, PayloadProtection, Protection};
use pteros_security::permissions::Permissions;
use pteros_security::permissions::access_control::{
    AccessControl, AccessDecision, EndpointRequest,
};
use pteros_security::subject::SubjectName;

const NOW: UnixTime = UnixTime(1_893_456_000);

const GOVERNANCE: &str = "<dds>
<domain_access_rules><domain_rule>
<domains><id>0</id></domains>
<allow_unauthenticated_participants>false</allow_unauthenticated_participants>
<enable_join_access_control>TRUE</enable_join_access_control>
<discovery_protection_kind>ENCRYPT</discovery_protection_kind>
<liveliness_protection_kind>SIGN</liveliness_protection_kind>
<rtps_protection_kind>SIGN_WITH_ORIGIN_AUTHENTICATION</rtps_protection_kind>
<topic_access_rules>
<topic_rule>
<topic_expression>rt/s*</topic_expression>
<enable_discovery_protection>true</enable_discovery_protection>
<enable_liveliness_protection>true</enable_liveliness_protection>
<enable_read_access_control>true</enable_read_access_control>
<enable_write_access_control>true</enable_write_access_control>
<metadata_protection_kind>ENCRYPT</metadata_protection_kind>
<data_protection_kind>ENCRYPT</data_protection_kind>
</topic_rule>
</topic_access_rules>
</domain_rule></domain_access_rules>
</dds>";

fn governance(text: &str) -> Result<Governance, Diagnostic> {
    Governance::read(DocumentSource {
        file: "governance.p7s",
        first_line: 1,
        text,
    })
}

fn permissions(rules: &str, default: &str) -> String {
    format!(
        "<dds><permissions><grant name=\"arm\">
<subject_name>CN=/arm</subject_name>
<validity><not_before>2020-01-01T00:00:00</not_before><not_after>2035-01-01T00:00:00</not_after></validity>
{rules}
<default>{default}</default>
</grant></permissions></dds>"
    )
}

fn read(text: &str) -> Result<Permissions, Diagnostic> {
    Permissions::read(DocumentSource {
        file: "permissions.p7s",
        first_line: 11,
        text,
    })
}

fn access(rules: &str, default: &str) -> AccessControl {
    let subject = SubjectName::parse("CN=/arm").unwrap();
    let governance = governance(GOVERNANCE).unwrap();
    let permissions = read(&permissions(rules, default)).unwrap();
    AccessControl::new(&governance, &permissions, &subject, 0).unwrap()
}

fn on<'a>(topic: &'a str, partitions: &'a [&'a str]) -> EndpointRequest<'a> {
    EndpointRequest {
        topic,
        partitions,
        tags: &[],
    }
}

fn rule(kind: &str, inner: &str) -> String {
    format!("<{kind}><domains><id>0</id></domains>{inner}</{kind}>")
}

fn write(access: &AccessControl, topic: &str) -> AccessDecision {
    access.may_write(&on(topic, &[]), NOW)
}

#[test]
fn a_governance_document_says_what_is_protected_and_how() {
    let governance = governance(GOVERNANCE).unwrap();
    let rule = governance.rule(0).unwrap();
    assert!(rule.join_access_control && !rule.allow_unauthenticated_participants);
    assert_eq!(rule.rtps, Protection::SignWithOriginAuthentication);
    assert!(rule.rtps.is_on() && !rule.rtps.encrypts() && rule.rtps.authenticates_origin());
    assert_eq!(rule.liveliness, Protection::Sign);
    let topic = rule.topic("rt/scan").unwrap();
    assert_eq!(topic.data, PayloadProtection::Encrypt);
    assert_eq!(topic.line, 10);
    assert!(rule.topic("rt/cmd").is_none() && governance.rule(1).is_none());
}

#[test]
fn every_error_in_a_governance_document_is_reported_with_its_line() {
    for (from, to, line, field) in [
        (">SIGN<", ">SIGNED<", 7, "<liveliness_protection_kind>"),
        (">SIGN<", "><", 7, "<liveliness_protection_kind>"),
        ("TRUE", "yes", 5, "<enable_join_access_control>"),
        ("<id>0</id>", "<id>-1</id>", 3, "<id>"),
        ("<id>0</id>", "", 3, "<domains>"),
        ("rt/s*", "rt/[s", 11, "<topic_expression>"),
        (
            "ENCRYPT</data",
            "ENCRYPT_WITH_ORIGIN_AUTHENTICATION</data",
            17,
            "<data_protection_kind>",
        ),
        (
            "<topic_rule>",
            "<topic_rule><topic_rule/>",
            10,
            "<topic_rule>",
        ),
        (
            "<topic_access_rules>",
            "<enable_key_revision>true</enable_key_revision><topic_access_rules>",
            9,
            "<enable_key_revision>",
        ),
        (
            "<allow_unauthenticated_participants>false</allow_unauthenticated_participants>",
            "",
            2,
            "<domain_rule>",
        ),
    ] {
        let text = GOVERNANCE.replacen(from, to, 1);
        assert_ne!(text, GOVERNANCE);
        let fault = governance(&text).unwrap_err();
        assert_eq!((fault.line, &*fault.field), (Some(line), field), "{fault}");
        assert!(!fault.remedy.is_empty());
    }
    let psk = "<rtps_psk_protection_kind>NONE</rtps_psk_protection_kind><topic_access_rules>";
    assert!(governance(&GOVERNANCE.replacen("<topic_access_rules>", psk, 1)).is_ok());
}

#[test]
fn every_error_in_a_permissions_document_is_reported_with_its_line() {
    let good = permissions(
        &rule(
            "allow_rule",
            "<publish><topics><topic>rt/a</topic></topics></publish>",
        ),
        "DENY",
    );
    assert!(read(&good).is_ok());
    for (from, to, line, field) in [
        (" name=\"arm\"", "", 11, "<grant>"),
        ("CN=/arm", "/arm", 12, "<subject_name>"),
        ("2020-01-01T00:00:00", "yesterday", 13, "<not_before>"),
        ("2020-01-01", "2040-01-01", 13, "<validity>"),
        ("rt/a", "rt/[a", 14, "<topic>"),
        ("<topic>rt/a</topic>", "", 14, "<topics>"),
        ("<publish>", "<write/><publish>", 14, "<write>"),
        ("<domains><id>0</id></domains>", "", 14, "<allow_rule>"),
        ("DENY", "deny", 15, "<default>"),
        ("<default>DENY</default>", "", 11, "<grant>"),
        ("<grant", "<Grant", 16, "document"),
    ] {
        let fault = read(&good.replacen(from, to, 1)).unwrap_err();
        assert_eq!((fault.line, &*fault.field), (Some(line), field), "{fault}");
    }
}

#[test]
fn the_first_rule_that_applies_decides_and_is_named() {
    let deny = "<publish><topics><topic>rt/secret*</topic></topics></publish>";
    let allow = "<publish><topics><topic>rt/s*</topic></topics></publish>
<subscribe><topics><topic>rt/scan</topic></topics></subscribe>";
    let access = access(
        &format!("{}\n{}", rule("deny_rule", deny), rule("allow_rule", allow)),
        "DENY",
    );
    let denied = write(&access, "rt/secret1");
    assert_eq!(
        denied.to_string(),
        "denied by permissions.p7s:14: grant 'arm': deny_rule publish 'rt/secret*'"
    );
    let allowed = write(&access, "rt/scan");
    assert_eq!(
        allowed.to_string(),
        "allowed by permissions.p7s:15: grant 'arm': allow_rule publish 'rt/s*'"
    );
    let read = access.may_read(&on("rt/speed", &[]), NOW);
    assert_eq!((read.allowed, read.line), (false, 17), "{read}");
    assert!(access.may_read(&on("rt/scan", &[]), NOW).allowed);
    let relay = access.may_relay(&on("rt/scan", &[]), NOW);
    assert!(!relay.allowed);
    let unknown = write(&access, "rq/scan");
    assert_eq!(
        unknown.to_string(),
        "denied by governance.p7s:2: domain 0: no topic_rule matches 'rq/scan'"
    );
}

#[test]
fn nothing_is_allowed_outside_the_validity_of_the_grant() {
    let allow = "<publish><topics><topic>*</topic></topics></publish>";
    let access = access(&rule("allow_rule", allow), "ALLOW");
    assert!(access.may_join(NOW).allowed);
    for (now, word) in [
        (UnixTime(0), "before"),
        (UnixTime(4_000_000_000), "expired"),
    ] {
        let endpoint = on("rt/scan", &[]);
        for decision in [access.may_join(now), access.may_write(&endpoint, now)] {
            assert!(
                !decision.allowed && decision.rule.contains(word),
                "{decision}"
            );
            assert_eq!(decision.line, 11);
        }
    }
}

#[test]
fn joining_needs_an_allow_rule_for_the_domain() {
    let allow = "<publish><topics><topic>rt/scan</topic></topics></publish>";
    assert!(
        access(&rule("allow_rule", allow), "DENY")
            .may_join(NOW)
            .allowed
    );
    let elsewhere = rule("allow_rule", allow).replace("<id>0<", "<id>1<");
    let decision = access(&elsewhere, "DENY").may_join(NOW);
    assert_eq!((decision.allowed, decision.line), (false, 15), "{decision}");
    assert!(access(&elsewhere, "ALLOW").may_join(NOW).allowed);
    assert!(!write(&access(&elsewhere, "DENY"), "rt/scan").allowed);
}

#[test]
fn partitions_must_all_be_allowed_and_none_denied() {
    let allow = |partitions: &str| {
        let inner = format!("<publish><topics><topic>*</topic></topics>{partitions}</publish>");
        access(&rule("allow_rule", &inner), "DENY")
    };
    let may = |access: &AccessControl, partitions: &[&str]| {
        access.may_write(&on("rt/scan", partitions), NOW).allowed
    };
    let none = allow("");
    assert!(may(&none, &[]) && may(&none, &[""]));
    assert!(!may(&none, &["a"]) && !may(&none, &["", "a"]) && !may(&none, &["*"]));
    // The missing part is named.
    let why = |access: &AccessControl| access.may_write(&on("rt/scan", &["b"]), NOW).to_string();
    assert!(why(&allow("")).contains("has no <partitions>, so it applies to the default one"));
    let some = allow("<partitions><partition>a*</partition></partitions>");
    assert!(why(&some).contains("('*' in line "));
    assert!(why(&some).contains("applies to other <partitions>"));
    assert!(may(&some, &["a"]) && may(&some, &["ab", "a*"]));
    assert!(!may(&some, &[]) && !may(&some, &["ab", "b"]));
    // Would meet partitions that the rule does not name.
    assert!(!may(&some, &["a?*"]) && !may(&some, &["*"]));
    let all = allow("<partitions><partition>*</partition></partitions>");
    assert!(may(&all, &[]) && may(&all, &["*", "b"]));

    let deny = |partitions: &str| {
        let inner = format!("<publish><topics><topic>*</topic></topics>{partitions}</publish>");
        access(&rule("deny_rule", &inner), "ALLOW")
    };
    let some = deny("<partitions><partition>a*</partition></partitions>");
    assert!(may(&some, &[]) && may(&some, &["b"]));
    assert!(!may(&some, &["b", "ab"]) && !may(&some, &["?b"]));
    assert!(!may(&deny(""), &["anything"]) && !may(&deny(""), &[]));
}

#[test]
fn data_tags_must_all_be_allowed_and_none_denied() {
    let tags = "<data_tags><tag><name>level</name><value>3</value></tag></data_tags>";
    let inner = format!("<publish><topics><topic>*</topic></topics>{tags}</publish>");
    let may = |access: &AccessControl, tags: &[(&str, &str)]| {
        let endpoint = EndpointRequest {
            topic: "rt/scan",
            partitions: &[],
            tags,
        };
        access.may_write(&endpoint, NOW).allowed
    };
    let allow = access(&rule("allow_rule", &inner), "DENY");
    assert!(may(&allow, &[]) && may(&allow, &[("level", "3")]));
    assert!(!may(&allow, &[("level", "4")]) && !may(&allow, &[("level", "3"), ("a", "b")]));
    let deny = access(&rule("deny_rule", &inner), "ALLOW");
    assert!(may(&deny, &[]) && may(&deny, &[("level", "4")]));
    assert!(!may(&deny, &[("a", "b"), ("level", "3")]));
}

#[test]
fn a_domain_or_subject_that_no_file_names_is_a_fault() {
    let governance = governance(GOVERNANCE).unwrap();
    let permissions = read(&permissions("", "DENY")).unwrap();
    let arm = SubjectName::parse("CN=/arm").unwrap();
    let leg = SubjectName::parse("CN=/leg").unwrap();
    let domain = AccessControl::new(&governance, &permissions, &arm, 3).unwrap_err();
    assert_eq!((&*domain.file, &*domain.value), ("governance.p7s", "3"));
    let subject = AccessControl::new(&governance, &permissions, &leg, 0).unwrap_err();
    assert_eq!(
        (&*subject.file, &*subject.value),
        ("permissions.p7s", "CN=/leg")
    );
}

#[test]
fn where_access_control_is_off_no_permission_is_asked_for() {
    let text = GOVERNANCE.replace(
        "<enable_write_access_control>true",
        "<enable_write_access_control>false",
    );
    let open = governance(&text).unwrap();
    let permissions = read(&permissions("", "DENY")).unwrap();
    let arm = SubjectName::parse("CN=/arm").unwrap();
    let access = AccessControl::new(&open, &permissions, &arm, 0).unwrap();
    let decision = write(&access, "rt/scan");
    assert!(decision.allowed && decision.rule.contains("enable_write_access_control"));
    assert!(!access.may_read(&on("rt/scan", &[]), NOW).allowed);
    assert!(access.may_join(NOW).allowed);
}

#[test]
fn mutated_documents_are_read_or_rejected_and_never_panic() {
    let rules = rule(
        "allow_rule",
        "<publish><topics><topic>rt/[a-c]*</topic></topics>\
         <partitions><partition>p?</partition></partitions></publish>",
    );
    let documents = [GOVERNANCE.to_owned(), permissions(&rules, "DENY")];
    let mut next = support::numbers(29);
    let subject = SubjectName::parse("CN=/arm").unwrap();
    for _ in 0..6000 {
        let [governed, permitted] = documents.each_ref().map(|document| {
            let mut bytes = document.clone().into_bytes();
            for _ in 0..next() % 3 {
                let at = next() % bytes.len();
                bytes[at] = b"<>/&;[]*-:TZ09a\\\"'"[next() % 18];
            }
            bytes.truncate(bytes.len().saturating_sub(next() % 9 / 8 * (next() % 400)));
            String::from_utf8(bytes).unwrap()
        });
        if let (Ok(governed), Ok(permitted)) = (governance(&governed), read(&permitted))
            && let Ok(access) = AccessControl::new(&governed, &permitted, &subject, 0)
        {
            let _ = access.may_join(NOW);
            let _ = access.may_write(&on("rt/b", &["p1"]), NOW);
        }
    }
}
