//! Signed documents of Pteros, OpenSSL and SROS 2 are read. A document without a
//! signature by the permissions CA itself is rejected with the reason.

use crate::support;
use pteros_test_support::folder::Folder;

use pteros_security::governance::Governance;
use pteros_security::smime::{SignedDocument, sign};
use pteros_security::{certificate::Certificate, date::UnixTime};
use support::{NOW, authority, certificate, member, openssl, read};

const DOCUMENT: &str = "<dds>\n  <a>ä</a>\n</dds>\n";

fn refusal(content: &[u8], authority: &Certificate) -> String {
    let fault = SignedDocument::read("g.p7s", content, authority, NOW).unwrap_err();
    fault.reason.to_string()
}

#[test]
fn documents_signed_by_openssl_and_by_sros_2_are_read() {
    for (store, ca, signed) in [
        ("sros2", "sros2/public/ca.cert.pem", "governance.p7s"),
        ("sros2", "sros2/public/ca.cert.pem", "governance.python.p7s"),
        (
            "rsa",
            "rsa/public/permissions_ca.cert.pem",
            "governance.p7s",
        ),
    ] {
        let content = read(&format!("{store}/enclaves/{signed}"));
        let document = SignedDocument::read(signed, &content, &certificate(ca), NOW).unwrap();
        let governance = Governance::read(document.source(signed)).unwrap();
        let line = governance.rules[0].line as usize;
        let text = String::from_utf8(content).unwrap();
        let line = text.lines().nth(line - 1).unwrap();
        assert!(line.contains("<domain_rule>"), "{signed}: {line}");
    }
}

#[test]
fn our_signatures_verify_here_and_with_openssl() {
    let folder = Folder::new("smime");
    for rsa in [false, true] {
        let (ca, key) = if rsa {
            let key = pteros_security::key::PrivateKey::generate_rsa().unwrap();
            let ca = pteros_security::issue::authority("ca", &key, support::validity());
            (ca.unwrap(), key)
        } else {
            authority("permissions_ca")
        };
        let signed = sign(DOCUMENT, &ca, &key, NOW).unwrap();
        let document = SignedDocument::read("g.p7s", signed.as_bytes(), &ca, NOW).unwrap();
        let text = document.source("g.p7s").text.replace("\r\n", "\n");
        assert_eq!(text, DOCUMENT);
        let path = folder.join("ca.pem");
        std::fs::write(&path, ca.to_pem()).unwrap();
        let path = path.to_str().unwrap();
        let verify = [
            "smime",
            "-verify",
            "-text",
            "-CAfile",
            path,
            "-certfile",
            path,
            "-nointern",
            "-attime",
            "1893456000",
        ];
        let Some((good, said)) = openssl(&verify, signed.as_bytes()) else {
            return;
        };
        assert!(good && said.replace('\r', "").contains(DOCUMENT), "{said}");
        let (good, said) = openssl(&verify, signed.replace("<a>", "<b>").as_bytes()).unwrap();
        assert!(!good, "{said}");
    }
}

#[test]
fn only_the_permissions_ca_itself_may_sign() {
    let ours = authority("permissions_ca");
    let signed = sign(DOCUMENT, &ours.0, &ours.1, NOW).unwrap();
    // Certified by the CA, and the signature carries the certificate along.
    let arm = member("/arm", &ours);
    let by_member = sign(DOCUMENT, &arm.0, &arm.1, NOW).unwrap();
    assert!(refusal(by_member.as_bytes(), &ours.0).contains("not signed by the permissions CA"));
    // The same name, another key and number.
    let theirs = authority("permissions_ca");
    let foreign = sign(DOCUMENT, &theirs.0, &theirs.1, NOW).unwrap();
    assert!(refusal(foreign.as_bytes(), &ours.0).contains("not signed by the permissions CA"));
    // The name and number of the CA, but not its key.
    let forged = sign(DOCUMENT, &ours.0, &theirs.1, NOW).unwrap();
    assert!(refusal(forged.as_bytes(), &ours.0).contains("not by the key"));
    // A signer that has expired.
    for late in [UnixTime(0), NOW.after_days(366)] {
        let fault = SignedDocument::read("g.p7s", signed.as_bytes(), &ours.0, late).unwrap_err();
        assert!(
            fault.reason.contains("the signer 'CN=permissions_ca' is"),
            "{fault}"
        );
    }
}

#[test]
fn a_changed_document_is_refused_and_new_line_ends_are_not_a_change() {
    let ours = authority("permissions_ca");
    let signed = sign(DOCUMENT, &ours.0, &ours.1, NOW).unwrap();
    let changed = signed.replace("<a>", "<b>");
    assert!(refusal(changed.as_bytes(), &ours.0).contains("changed after it was signed"));
    let windows = signed.replace('\n', "\r\n");
    assert!(SignedDocument::read("g.p7s", windows.as_bytes(), &ours.0, NOW).is_ok());
    let added = signed.replace("</dds>\n", "</dds>\n\n");
    assert!(refusal(added.as_bytes(), &ours.0).contains("changed"));
}

#[test]
fn unsigned_documents_are_rejected_with_their_kind() {
    let ours = authority("permissions_ca");
    let signed = sign(DOCUMENT, &ours.0, &ours.1, NOW).unwrap();
    let cut = &signed[..signed.len() / 3];
    let half = signed.replace("application/x-pkcs7-signature; name", "text/html; name");
    for (content, reason) in [
        (DOCUMENT, "not signed"),
        ("", "not an S/MIME"),
        ("hello", "not an S/MIME"),
        ("Content-Type: text/plain\n\nhello", "not multipart/signed"),
        (
            "Content-Type: application/pkcs7-mime\n\nhello",
            "not detached",
        ),
        ("Content-Type: multipart/signed\n\nhello", "boundary"),
        (cut, "cut short"),
        (half.as_str(), "not a PKCS#7"),
    ] {
        let refused = refusal(content.as_bytes(), &ours.0);
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(refusal(&[0xff, 0xfe], &ours.0).contains("not text"));
}

#[test]
fn mutated_signatures_are_rejected_and_never_panic() {
    let ours = authority("permissions_ca");
    let signed = sign(DOCUMENT, &ours.0, &ours.1, NOW).unwrap().into_bytes();
    let begins = signed.windows(4).rposition(|w| w == b"\n\nMI").unwrap() + 2;
    let mut next = support::numbers(7);
    let mut read = 0;
    for _ in 0..2000 {
        let mut bent = signed.clone();
        let at = begins + next() % (signed.len() - begins);
        bent[at] = b"ABCDwxyz0189+/=\n-"[next() % 17];
        if SignedDocument::read("g.p7s", &bent, &ours.0, NOW).is_ok() {
            read += 1;
        }
    }
    // Not covered: the copy of the CA's certificate (the signing time is covered),
    // and the last lines of the MIME message.
    assert!(read < 1200, "{read} of 2000 still read");
}
