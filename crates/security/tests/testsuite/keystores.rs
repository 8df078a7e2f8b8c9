//! Keystores created by Pteros: in SROS 2's layout, for every stack, and repaired
//! instead of lost.

use crate::support;
use pteros_test_support::folder::Folder;

use pteros_security::certificate::Certificate;
use pteros_security::date::UnixTime;
use pteros_security::enclave::Enclave;
use pteros_security::governance::Protection;
use pteros_security::keystore::{Keystore, Options, Severity, check};
use pteros_security::permissions::access_control::EndpointRequest;
use pteros_security::policy::{Policy, PolicyAction};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{NOW, fixture, openssl};

fn made(name: &str) -> (Folder, Keystore) {
    let folder = Folder::new(name);
    let keystore = Keystore::create(&folder, &Options::default(), NOW).unwrap();
    (folder, keystore)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn on(topic: &str) -> EndpointRequest<'_> {
    EndpointRequest {
        topic,
        ..EndpointRequest::default()
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else if let Ok(link) = fs::read_link(entry.path()) {
            std::os::unix::fs::symlink(link, target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_keystore_has_two_authorities_private_keys_for_its_owner_and_loads() {
    let (folder, keystore) = made("two");
    let arm = support::enclave(&keystore, "/robot/arm");
    for key in [
        "private/identity_ca.key.pem",
        "private/permissions_ca.key.pem",
    ] {
        assert_eq!(mode(&folder.join(key)), 0o600);
    }
    assert_eq!(mode(&folder.join("private")), 0o700);
    assert_eq!(mode(&arm.join("key.pem")), 0o600);
    let link = fs::read_link(arm.join("governance.p7s")).unwrap();
    assert_eq!(link, Path::new("../../governance.p7s"));
    let enclave = Enclave::load(&arm, NOW).unwrap();
    assert_eq!(enclave.warnings, []);
    let own = &enclave.identity.chain[0];
    assert_eq!(own.subject().common_name(), Some("/robot/arm"));
    assert_ne!(
        enclave.identity_authority.certificate.key(),
        enclave.permissions_authority.key()
    );
    let access = enclave.access(0).unwrap();
    assert_eq!(access.domain_rule().rtps, Protection::Encrypt);
    for topic in [
        "rt/chatter",
        "ros_discovery_info",
        "rq/a/b/_action/send_goalRequest",
    ] {
        assert!(access.may_write(&on(topic), NOW).allowed, "{topic}");
    }
    assert!(!access.may_write(&on("other"), NOW).allowed);
    assert_eq!(keystore.enclaves().unwrap(), ["/robot/arm"]);
    let again = Keystore::create(&folder, &Options::default(), NOW).unwrap_err();
    assert!(again.reason.contains("already"), "{again}");
}

#[test]
fn the_root_enclave_shares_the_folder_with_the_governance() {
    let (folder, keystore) = made("root");
    let root = support::enclave(&keystore, "/");
    assert!(
        fs::symlink_metadata(root.join("governance.p7s"))
            .unwrap()
            .is_file()
    );
    assert!(Enclave::load(&folder.join("enclaves"), NOW).is_ok());
    assert_eq!(keystore.enclaves().unwrap(), ["/"]);
}

#[test]
fn a_keystore_can_be_moved_since_its_links_are_relative() {
    let (folder, keystore) = made("moved");
    support::enclave(&keystore, "/a/b/c");
    let moved = Folder::new("elsewhere");
    copy_tree(&folder, &moved.join("ks"));
    drop(folder);
    assert!(Enclave::load(&moved.join("ks/enclaves/a/b/c"), NOW).is_ok());
}

#[test]
fn existing_files_are_kept_and_edited_ones_signed() {
    let (folder, keystore) = made("kept");
    let arm = support::enclave(&keystore, "/arm");
    let (key, cert) = (
        fs::read(arm.join("key.pem")).unwrap(),
        fs::read(arm.join("cert.pem")).unwrap(),
    );
    let text = fs::read_to_string(arm.join("permissions.xml")).unwrap();
    fs::write(arm.join("permissions.xml"), text.replace("rt/*", "rt/scan")).unwrap();
    support::enclave(&keystore, "/arm");
    assert_eq!(fs::read(arm.join("key.pem")).unwrap(), key);
    assert_eq!(fs::read(arm.join("cert.pem")).unwrap(), cert);
    let access = || Enclave::load(&arm, NOW).unwrap().access(0).unwrap();
    assert!(access().may_write(&on("rt/scan"), NOW).allowed);
    assert!(!access().may_write(&on("rt/map"), NOW).allowed);
    // An error is reported, and the signed file is unchanged.
    let signed = fs::read(arm.join("permissions.p7s")).unwrap();
    fs::write(arm.join("permissions.xml"), text.replace("DENY", "DENIED")).unwrap();
    let fault = keystore.sign(NOW).unwrap_err();
    assert_eq!((&*fault.field, &*fault.value), ("<default>", "DENIED"));
    assert_eq!(fs::read(arm.join("permissions.p7s")).unwrap(), signed);
    fs::write(arm.join("permissions.xml"), &text).unwrap();
    let governance = folder.join("enclaves/governance.xml");
    let edited = fs::read_to_string(&governance)
        .unwrap()
        .replace(">ENCRYPT</rtps", ">SIGN</rtps");
    fs::write(&governance, edited).unwrap();
    assert_eq!(keystore.sign(NOW).unwrap(), ["/arm"]);
    assert_eq!(access().domain_rule().rtps, Protection::Sign);
    assert!(access().may_write(&on("rt/map"), NOW).allowed);
}

#[test]
fn a_certificate_that_ends_soon_is_renewed_for_the_same_key() {
    let (_folder, keystore) = made("renewed");
    let short = Options {
        days: 40,
        ..Options::default()
    };
    let arm = keystore.create_enclave("/arm", None, &short, NOW).unwrap();
    let key = fs::read(arm.join("key.pem")).unwrap();
    let ends = |arm: &Path| {
        let text = fs::read(arm.join("cert.pem")).unwrap();
        Certificate::from_pem("c", &text).unwrap()[0]
            .validity()
            .not_after
    };
    assert_eq!(ends(&arm), NOW.after_days(40));
    keystore
        .create_enclave("/arm", None, &short, NOW.after_days(9))
        .unwrap();
    assert_eq!(ends(&arm), NOW.after_days(40));
    keystore
        .create_enclave("/arm", None, &short, NOW.after_days(11))
        .unwrap();
    assert_eq!(ends(&arm), NOW.after_days(51));
    assert_eq!(fs::read(arm.join("key.pem")).unwrap(), key);
    // Nothing outlives its authority.
    let long = Options {
        days: 99_999,
        ..short
    };
    let leg = keystore.create_enclave("/leg", None, &long, NOW).unwrap();
    assert_eq!(ends(&leg), NOW.after_days(3650));
}

#[test]
fn a_revoked_enclave_is_refused_by_all_until_it_has_a_new_key() {
    let (_folder, keystore) = made("revoked");
    let options = Options::default();
    let arm = support::enclave(&keystore, "/arm");
    let leg = support::enclave(&keystore, "/leg");
    let others = Enclave::load(&arm, NOW).unwrap();
    let nobody = keystore.revoke("/nobody", &options, NOW).unwrap_err();
    assert!(
        nobody.reason.contains("no enclave with this name"),
        "{nobody}"
    );
    keystore.revoke("/arm", &options, NOW).unwrap();
    let fault = Enclave::load(&arm, NOW).unwrap_err().remove(0);
    assert!(fault.reason.contains("revoked"), "{fault}");
    let judge = Enclave::load(&leg, NOW).unwrap().identity_authority;
    assert!(judge.admit(&others.identity.chain, NOW).is_err());
    support::enclave(&keystore, "/arm");
    let fresh = Enclave::load(&arm, NOW).unwrap();
    assert_eq!(judge.admit(&fresh.identity.chain, NOW), Ok(()));
    assert_ne!(
        fresh.identity.key.public_key(),
        others.identity.key.public_key()
    );
    // The list grows, and reaches enclaves that come later.
    keystore.revoke("/leg", &options, NOW).unwrap();
    let hand = support::enclave(&keystore, "/hand");
    let judge = Enclave::load(&hand, NOW).unwrap().identity_authority;
    assert!(judge.admit(&others.identity.chain, NOW).is_err());
    assert!(Enclave::load(&leg, NOW).is_err());
}

#[test]
fn an_enclave_is_added_to_a_keystore_that_sros_2_made() {
    let folder = Folder::new("sros2");
    copy_tree(&fixture("sros2"), &folder);
    let keystore = Keystore::open(&folder).unwrap();
    let arm = support::enclave(&keystore, "/arm");
    let enclave = Enclave::load(&arm, NOW).unwrap();
    assert!(enclave.access(0).unwrap().may_join(NOW).allowed);
    assert_eq!(keystore.enclaves().unwrap(), ["/arm", "/talker"]);
    let nothing = Folder::new("nothing");
    assert!(Keystore::open(&nothing).is_err());
}

#[test]
fn openssl_agrees_with_every_certificate_and_list() {
    let (folder, keystore) = made("openssl");
    let arm = support::enclave(&keystore, "/arm");
    let ca = folder.join("public/identity_ca.cert.pem");
    let (ca, cert) = (ca.to_str().unwrap(), arm.join("cert.pem"));
    let cert = cert.to_str().unwrap();
    let verify = [
        "verify",
        "-attime",
        "1893456000",
        "-x509_strict",
        "-CAfile",
        ca,
    ];
    let Some((good, said)) = openssl(&[&verify[..], &[cert]].concat(), &[]) else {
        return;
    };
    assert!(good, "{said}");
    let key = arm.join("key.pem");
    let (good, said) = openssl(
        &["pkey", "-in", key.to_str().unwrap(), "-check", "-noout"],
        &[],
    )
    .unwrap();
    assert!(good, "{said}");
    keystore.revoke("/arm", &Options::default(), NOW).unwrap();
    let list = folder.join("public/crl.pem");
    let crl = ["-crl_check", "-CRLfile", list.to_str().unwrap(), cert];
    let (good, said) = openssl(&[&verify[..], &crl].concat(), &[]).unwrap();
    assert!(!good && said.contains("revoked"), "{said}");
}

#[test]
fn a_policy_becomes_permissions_for_just_what_it_names() {
    let folder = Folder::new("policy");
    let path = folder.join("policy.xml");
    fs::create_dir(folder.join("common")).unwrap();
    fs::write(
        folder.join("common/node.xml"),
        "<profile xmlns:xi=\"http://www.w3.org/2001/XInclude\">\n\
         <topics publish=\"ALLOW\"><topic>rosout</topic></topics>\n\
         <services reply=\"ALLOW\"><service>~/get_parameters</service></services></profile>",
    )
    .unwrap();
    fs::write(
        &path,
        "<policy version=\"0.2.0\" xmlns:xi=\"http://www.w3.org/2001/XInclude\"><enclaves>\n\
         <enclave path=\"/arm\"><profiles><profile ns=\"/robot\" node=\"arm\">\n\
         <xi:include href=\"common/node.xml\" xpointer=\"xpointer(/profile/*)\"/>\n\
         <topics subscribe=\"ALLOW\"><topic>/clock</topic></topics>\n\
         <topics publish=\"DENY\"><topic>/secret</topic></topics>\n\
         <actions call=\"ALLOW\"><action>go</action></actions>\n\
         </profile></profiles></enclave></enclaves></policy>",
    )
    .unwrap();
    let policy = Policy::read(&path).unwrap();
    let (_store, keystore) = made("permissions");
    let options = Options::default();
    let missing =
        keystore.create_permission("/arm", policy.enclave("/arm").unwrap(), &options, NOW);
    assert!(
        missing
            .unwrap_err()
            .reason
            .contains("no enclave with this name")
    );
    support::enclave(&keystore, "/arm");
    let arm = keystore
        .create_permission("/arm", policy.enclave("/arm").unwrap(), &options, NOW)
        .unwrap();
    let access = Enclave::load(&arm, NOW).unwrap().access(0).unwrap();
    let write = |topic| access.may_write(&on(topic), NOW).allowed;
    let read = |topic| access.may_read(&on(topic), NOW).allowed;
    assert!(write("rt/robot/rosout") && !read("rt/robot/rosout"));
    assert!(
        write("rr/robot/arm/get_parametersReply") && read("rq/robot/arm/get_parametersRequest")
    );
    assert!(read("rt/clock") && !write("rt/clock"));
    assert!(write("rq/robot/go/_action/send_goalRequest") && read("rt/robot/go/_action/status"));
    assert!(!write("rt/secret") && !write("rt/chatter"));
    assert!(write("ros_discovery_info") && read("ros_discovery_info"));

    fs::write(
        folder.join("common/node.xml"),
        "<profile><topics publish=\"YES\"/></profile>",
    )
    .unwrap();
    let fault = Policy::read(&path).unwrap_err();
    assert!(fault.file.ends_with("common/node.xml"), "{fault}");
    fs::write(
        folder.join("common/node.xml"),
        "<profile><include href=\"node.xml\" xpointer=\"xpointer(/profile/*)\"/></profile>",
    )
    .unwrap();
    assert!(Policy::read(&path).unwrap_err().reason.contains("deep"));
}

#[test]
fn a_policy_that_only_publishes_or_only_subscribes_is_a_whole_one() {
    for (action, other) in [
        (PolicyAction::Publish, PolicyAction::Subscribe),
        (PolicyAction::Subscribe, PolicyAction::Publish),
    ] {
        let mut policy = Policy::default();
        policy.allow("/arm", "/", "arm", action, "scan");
        let (_folder, keystore) = made("one_way");
        support::enclave(&keystore, "/arm");
        let options = Options::default();
        let enclave = policy.enclave("/arm").unwrap();
        let arm = keystore.create_permission("/arm", enclave, &options, NOW);
        let access = Enclave::load(&arm.unwrap(), NOW).unwrap().access(0);
        let access = access.unwrap();
        let allows = |action: PolicyAction| match action {
            PolicyAction::Publish => access.may_write(&on("rt/scan"), NOW).allowed,
            _ => access.may_read(&on("rt/scan"), NOW).allowed,
        };
        assert!(allows(action) && !allows(other));
    }
}

/// RFC 5758 §3.2: a signature by ECDSA has no parameters, not even NULL.
#[test]
fn a_certificate_names_its_signature_without_parameters() {
    let (folder, keystore) = made("parameters");
    let arm = support::enclave(&keystore, "/arm");
    // SEQUENCE of the OBJECT IDENTIFIER ecdsa-with-SHA256 alone.
    let algorithm = [
        0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02,
    ];
    for path in [
        arm.join("cert.pem"),
        folder.join("public/identity_ca.cert.pem"),
    ] {
        let text = fs::read(&path).unwrap();
        let chain = Certificate::from_pem("cert.pem", &text).unwrap();
        let der = chain[0].der();
        let times = der.windows(algorithm.len()).filter(|at| *at == algorithm);
        assert_eq!(times.count(), 2, "signed, and in the signature");
    }
}

#[test]
fn a_check_names_topics_whose_samples_can_be_read() {
    let (folder, keystore) = made("readable");
    support::enclave(&keystore, "/arm");
    let governance = folder.join("enclaves/governance.xml");
    let readable = |edits: &[(&str, &str)]| {
        let mut text = fs::read_to_string(&governance).unwrap();
        for (from, to) in edits {
            assert!(text.contains(from), "{from} is not in {text}");
            text = text.replace(from, to);
        }
        fs::write(&governance, text).unwrap();
        keystore.sign(NOW).unwrap();
        let found = check(&folder, NOW).unwrap();
        let faults = found.iter().map(|finding| finding.fault.to_string());
        faults
            .filter(|fault| fault.contains("samples can be read"))
            .count()
    };
    assert_eq!(readable(&[]), 0);
    // Each of the three layers hides them.
    let layers = ["rtps", "metadata", "data"].map(|layer| {
        let element = |kind: &str| format!("<{layer}_protection_kind>{kind}<");
        (element("ENCRYPT"), element("SIGN"))
    });
    for (on, off) in &layers {
        readable(&[(on, off)]);
    }
    assert_eq!(readable(&[]), 1);
    for (on, off) in &layers {
        assert_eq!(readable(&[(off, on)]), 0, "{on}");
        assert_eq!(readable(&[(on, off)]), 1, "{on}");
    }
}

#[test]
fn a_policy_is_written_and_read_back() {
    let mut policy = Policy::default();
    policy.allow("/arm", "/", "arm", PolicyAction::Publish, "scan");
    policy.allow("/arm", "/", "arm", PolicyAction::Publish, "scan");
    policy.allow("/arm", "/", "arm", PolicyAction::Reply, "~/set<\"&");
    policy.allow("/", "/a", "leg", PolicyAction::Call, "/go");
    let folder = Folder::new("written");
    let path = folder.join("policy.xml");
    fs::write(&path, policy.to_xml()).unwrap();
    assert_eq!(Policy::read(&path).unwrap(), policy);
    assert_eq!(policy.enclaves[0].profiles[0].rules[0].names, ["scan"]);
}

#[test]
fn a_check_lists_broken_before_weak_findings() {
    let (folder, keystore) = made("check");
    assert!(
        check(&folder, NOW)
            .unwrap_err()
            .reason
            .contains("no enclaves")
    );
    let arm = support::enclave(&keystore, "/arm");
    let reasons = |severity: Severity| -> Vec<String> {
        let found = check(&folder, NOW).unwrap().into_iter();
        let found = found.filter(|finding| finding.severity == severity);
        found.map(|finding| finding.fault.to_string()).collect()
    };
    // A fresh one: its authorities' keys are there, and it allows every topic.
    assert_eq!(
        reasons(Severity::Weak).len(),
        2,
        "{:?}",
        reasons(Severity::Weak)
    );
    assert_eq!(reasons(Severity::Broken), [""; 0]);
    fs::remove_dir_all(folder.join("private")).unwrap();
    assert_eq!(reasons(Severity::Weak).len(), 1);
    fs::set_permissions(arm.join("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(
        reasons(Severity::Weak)
            .iter()
            .any(|said| said.contains("0644"))
    );
    fs::remove_file(arm.join("permissions.p7s")).unwrap();
    let broken = reasons(Severity::Broken);
    assert!(
        broken.len() == 1 && broken[0].contains("permissions.p7s"),
        "{broken:?}"
    );
    let later = check(&folder, UnixTime(i64::from(i32::MAX) * 3)).unwrap();
    assert_eq!(later[0].severity, Severity::Broken);

    let sros2 = check(&fixture("sros2"), NOW).unwrap();
    let said: Vec<String> = sros2
        .iter()
        .map(|finding| finding.fault.to_string())
        .collect();
    for weakness in ["one CA", "CVE-2019-19625"] {
        let times = said.iter().filter(|said| said.contains(weakness)).count();
        assert_eq!(times, 1, "{weakness}: {said:?}");
    }
}

#[test]
fn a_check_without_keystore_names_the_command_to_create_one() {
    let fault = check(Path::new("/nowhere/keystore"), NOW).unwrap_err();
    assert!(fault.remedy.contains("create_keystore"), "{fault}");
}

#[test]
fn a_check_reports_domains_that_cyclone_dds_does_not_support() {
    for (domain, files) in [(230, 0), (231, 2), (232, 2)] {
        let folder = Folder::new("domains");
        let options = Options {
            domain,
            ..Options::default()
        };
        let keystore = Keystore::create(&folder, &options, NOW).unwrap();
        keystore
            .create_enclave("/arm", None, &options, NOW)
            .unwrap();
        let found = check(&folder, NOW).unwrap();
        let told = found.iter().map(|finding| finding.fault.to_string());
        let told: Vec<String> = told.filter(|said| said.contains("Cyclone DDS")).collect();
        // Governance and permissions.
        assert_eq!(told.len(), files, "{told:?}");
        assert!(told.iter().all(|said| said.contains(&domain.to_string())));
    }
}
