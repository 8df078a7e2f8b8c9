//! Identity of a participant: a certificate issued by the identity CA, and its
//! private key (DDS Security 1.1 §9.3.1). Revocation lists (CRL) of the CA are
//! checked here.

use crate::certificate::{Certificate, RevocationList};
use crate::date::UnixTime;
use crate::key::PrivateKey;
use crate::subject::SubjectName;

/// The identity CA. It issued the certificates of all allowed participants.
#[derive(Debug, Clone)]
pub struct CertificateAuthority {
    /// The CA's certificate.
    pub certificate: Certificate,
    /// Its revocation list.
    pub revoked: Option<RevocationList>,
}

/// A participant's own certificate and key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, then those up to the authority.
    pub chain: Vec<Certificate>,
    /// The private key of the first certificate.
    pub key: PrivateKey,
}

/// Why a certificate is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRejection {
    /// There is no certificate.
    #[error("there is no certificate")]
    Empty,
    /// Issued by another authority, or forged.
    #[error("the certificate of '{subject}' is not issued by the identity CA: {reason}")]
    Foreign {
        /// The certificate's subject.
        subject: SubjectName,
        /// The difference.
        reason: String,
    },
    /// Not yet valid, or expired.
    #[error("the certificate of '{subject}' is {reason}")]
    NotValid {
        /// The certificate's subject.
        subject: SubjectName,
        /// Since or until when.
        reason: String,
    },
    /// A revocation list of the authority names the certificate.
    #[error("the certificate of '{subject}' with serial {serial} was revoked at {at}")]
    Revoked {
        /// The certificate's subject.
        subject: SubjectName,
        /// Its number.
        serial: String,
        /// When it was revoked.
        at: UnixTime,
    },
    /// The revocation list is outdated.
    #[error("the revocation list of '{authority}' should have been renewed by {due}")]
    OutdatedList {
        /// The issuer of the list.
        authority: SubjectName,
        /// When a newer one was due.
        due: UnixTime,
    },
    /// An owner that may not issue certificates issued one.
    #[error("'{0}' may not issue certificates")]
    MayNotIssue(SubjectName),
    /// The certificate is not for signing.
    #[error("the certificate of '{0}' is not for signing (keyUsage)")]
    MayNotSign(SubjectName),
}

impl CertificateAuthority {
    /// Checks that this authority issued the first certificate, through those after
    /// it in order, and that it is valid now.
    pub fn admit(&self, chain: &[Certificate], now: UnixTime) -> Result<(), CertificateRejection> {
        let (leaf, between) = chain.split_first().ok_or(CertificateRejection::Empty)?;
        if !leaf.may_sign() {
            return Err(CertificateRejection::MayNotSign(leaf.subject().clone()));
        }
        let mut current = leaf;
        // The file may include the authority's own, self-signed certificate.
        let between = between.iter().filter(|one| **one != self.certificate);
        for issuer in between {
            self.admit_issued(current, issuer, now)?;
            if issuer.may_issue() != Some(true) {
                return Err(CertificateRejection::MayNotIssue(issuer.subject().clone()));
            }
            current = issuer;
        }
        self.admit_issued(current, &self.certificate, now)?;
        if self.certificate.may_issue() == Some(false) {
            return Err(CertificateRejection::MayNotIssue(
                self.certificate.subject().clone(),
            ));
        }
        admit_date(&self.certificate, now)
    }

    fn admit_issued(
        &self,
        certificate: &Certificate,
        issuer: &Certificate,
        now: UnixTime,
    ) -> Result<(), CertificateRejection> {
        let subject = || certificate.subject().clone();
        let signed = certificate.is_signed_by(issuer);
        signed.map_err(|reason| CertificateRejection::Foreign {
            subject: subject(),
            reason,
        })?;
        admit_date(certificate, now)?;
        let Some(list) = &self.revoked else {
            return Ok(());
        };
        if let Some(due) = list.is_outdated(now) {
            return Err(CertificateRejection::OutdatedList {
                authority: self.certificate.subject().clone(),
                due,
            });
        }
        // The list only covers certificates of this authority.
        let own = issuer == &self.certificate;
        match list.revoked(certificate).filter(|_| own) {
            Some(at) => Err(CertificateRejection::Revoked {
                subject: subject(),
                serial: certificate.serial(),
                at,
            }),
            None => Ok(()),
        }
    }
}

fn admit_date(certificate: &Certificate, now: UnixTime) -> Result<(), CertificateRejection> {
    match certificate.validity().rejection(now) {
        Some(reason) => Err(CertificateRejection::NotValid {
            subject: certificate.subject().clone(),
            reason,
        }),
        None => Ok(()),
    }
}
