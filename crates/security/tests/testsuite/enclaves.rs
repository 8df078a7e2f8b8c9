//! Keystores of SROS 2 and OpenSSL, loaded, and broken in every way.

use crate::support;
use pteros_test_support::folder::Folder;

use pteros_security::certificate::{Certificate, RevocationList};
use pteros_security::date::UnixTime;
use pteros_security::enclave::Enclave;
use pteros_security::enclave_watch::EnclaveWatch;
use pteros_security::identity::{CertificateAuthority, CertificateRejection};
use pteros_security::issue;
use pteros_security::key::{KeyKind, PrivateKey};
use pteros_security::keystore::{Keystore, Options};
use pteros_security::permissions::access_control::EndpointRequest;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use support::{NOW, authority, fixture, member, validity};

/// A copy of a fixture's enclave without links, to break.
fn copy(keystore: &str) -> Folder {
    let folder = Folder::new("enclave");
    for entry in fs::read_dir(fixture(keystore).join("enclaves/talker")).unwrap() {
        let entry = entry.unwrap();
        let content = fs::read(entry.path()).unwrap();
        fs::write(folder.join(entry.file_name()), content).unwrap();
    }
    fs::set_permissions(folder.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    folder
}

/// The one fault of an enclave.
fn fault(folder: &Folder, now: UnixTime) -> String {
    let faults = Enclave::load(folder, now).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].to_string()
}

#[test]
fn a_keystore_of_sros_2_loads_unchanged() {
    let enclave = Enclave::load(&fixture("sros2/enclaves/talker"), NOW).unwrap();
    assert_eq!(enclave.identity.key.kind(), KeyKind::EcP256);
    let own = enclave.identity.chain[0].subject();
    assert_eq!(own.common_name(), Some("/talker"));
    assert!(!enclave.permissions_file.is_empty());
    let one_ca =
        |warning: &&pteros_security::diagnostic::Diagnostic| warning.reason.contains("one CA");
    assert_eq!(enclave.warnings.iter().filter(one_ca).count(), 1);
    let access = enclave.access(0).unwrap();
    assert!(access.may_join(NOW).allowed);
    // The lines of the signed file, not of the document within.
    let fault = enclave.access(7).unwrap_err();
    assert!(fault.file.ends_with("governance.p7s"));
    let decision = access.may_join(NOW);
    let text = fs::read_to_string(fixture("sros2/enclaves/talker/permissions.p7s")).unwrap();
    let line = text.lines().nth(decision.line as usize - 1).unwrap();
    assert!(line.contains("<allow_rule>"), "{line}");
}

#[test]
fn rsa_and_version_1_certificates_and_two_authorities_load_too() {
    let enclave = Enclave::load(&fixture("rsa/enclaves/talker"), NOW).unwrap();
    assert_eq!(enclave.identity.key.kind(), KeyKind::Rsa);
    let ca = &enclave.permissions_authority;
    assert!(ca.is_signed_by(ca).is_ok());
    assert_eq!(
        ca.subject().to_string(),
        "CN=permissions_ca,O=Robots\\, Inc.,C=DE"
    );
    let one_ca =
        |warning: &&pteros_security::diagnostic::Diagnostic| warning.reason.contains("one CA");
    assert_eq!(enclave.warnings.iter().find(one_ca), None);
}

#[test]
fn an_enclave_with_a_file_missing_or_broken_says_which() {
    let missing = Enclave::load(&fixture("sros2/enclaves/nobody"), NOW).unwrap_err();
    assert!(missing[0].to_string().contains("does not exist"));
    for name in [
        "cert.pem",
        "key.pem",
        "identity_ca.cert.pem",
        "permissions_ca.cert.pem",
        "governance.p7s",
        "permissions.p7s",
    ] {
        let folder = copy("sros2");
        fs::remove_file(folder.join(name)).unwrap();
        assert!(
            fault(&folder, NOW).contains(&format!("{name}: file")),
            "{name}"
        );
        fs::write(folder.join(name), "nothing of use").unwrap();
        let said = fault(&folder, NOW);
        assert!(said.contains(name), "{said}");
    }
}

/// SROS 2 accepts such files in place of those with the same name and `.pem`.
#[test]
fn an_enclave_on_a_pkcs11_token_says_what_to_do() {
    let names = ["key", "cert", "identity_ca.cert", "permissions_ca.cert"];
    for name in names {
        let folder = copy("sros2");
        let pem = folder.join(format!("{name}.pem"));
        let token = folder.join(format!("{name}.p11"));
        fs::write(&token, "pkcs11:token=robot;object=arm").unwrap();
        // Beside what is read it does no harm.
        Enclave::load(&folder, NOW).unwrap();
        fs::remove_file(&pem).unwrap();
        let said = fault(&folder, NOW);
        let remedy = format!("put the object beside it as {name}.pem");
        assert!(said.contains(&*token.to_string_lossy()), "{said}");
        assert!(said.contains("PKCS#11") && said.contains(&remedy), "{said}");
    }
}

#[test]
fn a_readable_key_is_a_warning_and_a_wrong_key_an_error() {
    let folder = copy("sros2");
    let key = folder.join("key.pem");
    let warned = |folder: &Folder| {
        let enclave = Enclave::load(folder, NOW).unwrap();
        enclave.warnings.iter().any(|w| &*w.field == "mode")
    };
    assert!(!warned(&folder));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(warned(&folder));
    fs::write(&key, PrivateKey::generate().unwrap().to_pem().unwrap()).unwrap();
    assert!(fault(&folder, NOW).contains("does not belong"));
}

#[test]
fn expired_certificates_are_rejected_with_the_date() {
    let folder = copy("sros2");
    let late = UnixTime(NOW.0 + 200 * 365 * 86_400);
    let faults = Enclave::load(&folder, late).unwrap_err();
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    // The authorities themselves, and not all that they have signed.
    assert_eq!(said.len(), 2, "{said:?}");
    for (fault, file) in said.iter().zip(["identity_ca.cert", "permissions_ca.cert"]) {
        assert!(fault.contains("expired at") && fault.contains("create_keystore"));
        assert!(fault.contains(file), "{fault}");
    }
}

#[test]
fn missing_or_special_files_are_rejected_without_blocking() {
    let file = fixture("sros2/enclaves/talker/cert.pem");
    let faults = Enclave::load(&file, NOW).unwrap_err();
    assert!(faults[0].to_string().contains("is not a folder"));
    // Opening a pipe or a socket would block until its other end is opened.
    let folder = copy("sros2");
    fs::remove_file(folder.join("cert.pem")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("cert.pem")).unwrap();
    assert!(fault(&folder, NOW).contains("cert.pem: file: not a regular file"));
    let folder = copy("sros2");
    let text = fs::read(folder.join("cert.pem")).unwrap();
    let chain = Certificate::from_pem("cert.pem", &text).unwrap();
    fs::write(folder.join("cert.pem"), chain[0].der()).unwrap();
    let said = fault(&folder, NOW);
    assert!(
        said.contains("is DER") && said.contains("openssl"),
        "{said}"
    );
}

/// A link to the list means that the list is required.
#[test]
fn a_dangling_revocation_list_is_an_error() {
    let folder = copy("sros2");
    let list = folder.join("crl.pem");
    std::os::unix::fs::symlink("../public/crl.pem", &list).unwrap();
    assert!(fault(&folder, NOW).contains("crl.pem: file: cannot be read"));
    // Of version 1, whose first field is the algorithm.
    fs::remove_file(&list).unwrap();
    let text = "-----BEGIN X509 CRL-----\nMAQwAjAA\n-----END X509 CRL-----\n";
    fs::write(&list, text).unwrap();
    let said = fault(&folder, NOW);
    assert!(
        said.contains("version 1") && said.contains("crl_extensions"),
        "{said}"
    );
}

#[test]
fn foreign_and_forged_certificates_are_rejected() {
    let ours = authority("identity_ca");
    let theirs = authority("identity_ca");
    let admitting = CertificateAuthority {
        certificate: ours.0.clone(),
        revoked: None,
    };
    let arm = member("/arm", &ours);
    assert_eq!(admitting.admit(std::slice::from_ref(&arm.0), NOW), Ok(()));
    assert_eq!(
        admitting.admit(&[arm.0.clone(), ours.0.clone()], NOW),
        Ok(())
    );
    assert_eq!(admitting.admit(&[], NOW), Err(CertificateRejection::Empty));
    // An authority of the same name, another key.
    let forged = admitting.admit(&[member("/arm", &theirs).0], NOW);
    assert!(
        matches!(&forged, Err(CertificateRejection::Foreign { reason, .. }) if reason.contains("signature"))
    );
    let foreign = admitting.admit(&[member("/arm", &authority("other")).0], NOW);
    assert!(matches!(foreign, Err(CertificateRejection::Foreign { .. })));
    let early = admitting.admit(std::slice::from_ref(&arm.0), UnixTime(0));
    assert!(matches!(early, Err(CertificateRejection::NotValid { .. })));
    // A certified participant may not certify others.
    let leg = member("/leg", &arm);
    let through = admitting.admit(&[leg.0, arm.0], NOW);
    assert!(
        matches!(through, Err(CertificateRejection::MayNotIssue(_))),
        "{through:?}"
    );
}

#[test]
fn every_byte_of_a_certificate_counts() {
    let ours = authority("identity_ca");
    let admitting = CertificateAuthority {
        certificate: ours.0.clone(),
        revoked: None,
    };
    let der = member("/arm", &ours).0.der().to_vec();
    for at in 0..der.len() {
        let mut bent = der.clone();
        bent[at] ^= 1;
        if let Ok(certificate) = Certificate::from_der(&bent) {
            assert!(admitting.admit(&[certificate], NOW).is_err(), "byte {at}");
        }
    }
}

#[test]
fn revoked_certificates_are_refused_while_the_list_holds() {
    let ours = authority("identity_ca");
    let (arm, leg) = (member("/arm", &ours).0, member("/leg", &ours).0);
    let revoke = |former: Option<&RevocationList>, whom: &[Certificate]| {
        let list = issue::revocation_list(former, whom, &ours.0, &ours.1, validity()).unwrap();
        RevocationList::from_pem("crl.pem", list.as_bytes(), &ours.0).unwrap()
    };
    let first = revoke(None, std::slice::from_ref(&arm));
    let mut admitting = CertificateAuthority {
        certificate: ours.0.clone(),
        revoked: Some(first.clone()),
    };
    let refused = admitting.admit(std::slice::from_ref(&arm), NOW);
    assert!(
        matches!(refused, Err(CertificateRejection::Revoked { .. })),
        "{refused:?}"
    );
    assert_eq!(admitting.admit(std::slice::from_ref(&leg), NOW), Ok(()));
    // A later list has what the former had.
    admitting.revoked = Some(revoke(Some(&first), std::slice::from_ref(&leg)));
    assert!(
        admitting.admit(&[arm], NOW).is_err()
            && admitting.admit(std::slice::from_ref(&leg), NOW).is_err()
    );
    // An empty list revokes nothing, until it is outdated.
    admitting.revoked = Some(revoke(None, &[]));
    assert_eq!(admitting.admit(&[leg], NOW), Ok(()));
    let fresh = {
        let key = PrivateKey::generate().unwrap();
        let long = pteros_security::date::Validity {
            not_after: NOW.after_days(9999),
            ..validity()
        };
        issue::identity("/new", &key.public_key(), &ours.0, &ours.1, long).unwrap()
    };
    let late = admitting.admit(&[fresh], NOW.after_days(400));
    assert!(
        matches!(late, Err(CertificateRejection::OutdatedList { .. })),
        "{late:?}"
    );
    // The list of another authority.
    let theirs = authority("identity_ca");
    let list = issue::revocation_list(None, &[], &theirs.0, &theirs.1, validity()).unwrap();
    let fault = RevocationList::from_pem("crl.pem", list.as_bytes(), &ours.0).unwrap_err();
    assert!(fault.reason.contains("signature"), "{fault}");
}

#[test]
fn random_bytes_are_rejected_as_certificates() {
    let der = support::certificate("sros2/enclaves/talker/cert.pem")
        .der()
        .to_vec();
    let mut next = support::numbers(1);
    for _ in 0..3000 {
        let mut bent = der.clone();
        for _ in 0..=next() % 4 {
            let at = next() % bent.len();
            bent[at] = next() as u8;
        }
        bent.truncate(next() % (der.len() + 1));
        let _ = Certificate::from_der(&bent);
    }
}

#[test]
fn changed_files_are_detected_and_reloaded() {
    let root = Folder::new("changing");
    let options = Options::default();
    let keystore = Keystore::create(&root, &options, NOW).unwrap();
    let folder = support::enclave(&keystore, "/arm");
    let mut watch = EnclaveWatch::new(&folder);
    let mut enclave = Enclave::load(&folder, NOW).unwrap();
    assert!(!watch.has_changed());

    // Signed again without a change: peers are not informed.
    keystore.sign(NOW).unwrap();
    assert!(watch.has_changed() && !watch.has_changed());
    let renewal = enclave.reload(NOW).unwrap();
    assert!(!renewal.has_changed && renewal.ignored_changes.is_empty());

    let edit = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(root.join(file), text.replace(from, to)).unwrap();
        keystore.sign(NOW).unwrap();
    };
    edit("enclaves/arm/permissions.xml", "rt/*", "rt/narrow*");
    assert!(watch.has_changed());
    let renewal = enclave.reload(NOW).unwrap();
    assert!(renewal.has_changed && renewal.ignored_changes.is_empty());
    let wide = EndpointRequest {
        topic: "rt/wide",
        ..EndpointRequest::default()
    };
    let decision = enclave.access(0).unwrap().may_write(&wide, NOW);
    assert!(!decision.allowed, "{decision}");

    // Governance holds as it was.
    edit("enclaves/governance.xml", "ENCRYPT", "SIGN");
    let renewal = enclave.reload(NOW).unwrap();
    assert!(!renewal.has_changed && renewal.ignored_changes.len() == 1);
    let kept = renewal.ignored_changes[0].to_string();
    assert!(
        kept.contains("governance.p7s") && kept.contains("restart"),
        "{kept}"
    );

    // A broken file changes nothing.
    fs::write(folder.join("permissions.p7s"), "half of i").unwrap();
    assert!(watch.has_changed());
    let faults = enclave.reload(NOW).unwrap_err();
    assert!(faults[0].file.ends_with("permissions.p7s"), "{faults:?}");
    assert!(!enclave.access(0).unwrap().may_write(&wide, NOW).allowed);
    fs::remove_file(folder.join("permissions.p7s")).unwrap();
    assert!(watch.has_changed() && enclave.reload(NOW).is_err());

    // A new certificate of the same subject is taken up, another's is not.
    keystore.sign(NOW).unwrap();
    let other = support::enclave(&keystore, "/leg");
    for file in ["cert.pem", "key.pem", "permissions.p7s"] {
        fs::copy(other.join(file), folder.join(file)).unwrap();
    }
    let faults = enclave.reload(NOW).unwrap_err();
    assert!(
        faults[0].to_string().contains("another subject"),
        "{faults:?}"
    );
}
