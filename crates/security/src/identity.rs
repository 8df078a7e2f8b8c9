//! Who somebody is: a certificate that one authority issued, and the key that
//! belongs to it (DDS Security 1.1 §9.3.1).

use crate::certificate::{Certificate, RevocationList};
use crate::date::UnixTime;
use crate::key::PrivateKey;
use crate::subject::SubjectName;

/// The identity CA: whom it issued a certificate is one of us.
#[derive(Debug, Clone)]
pub struct Authority {
    /// Its certificate.
    pub certificate: Certificate,
    /// What it has taken back.
    pub revoked: Option<RevocationList>,
}

/// A participant's own certificate and key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, then those between it and the authority.
    pub chain: Vec<Certificate>,
    /// The key of the first.
    pub key: PrivateKey,
}

/// Why a certificate is no proof of who somebody is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No certificate at all.
    #[error("there is no certificate")]
    Empty,
    /// Issued by somebody else, or forged.
    #[error("the certificate of '{subject}' is not by the identity CA: {reason}")]
    Foreign {
        /// Whose certificate.
        subject: SubjectName,
        /// What does not fit.
        reason: String,
    },
    /// Not yet or no more valid.
    #[error("the certificate of '{subject}' is {reason}")]
    NotValid {
        /// Whose certificate.
        subject: SubjectName,
        /// Since or until when.
        reason: String,
    },
    /// Taken back.
    #[error("the certificate of '{subject}' with serial {serial} was revoked at {at}")]
    Revoked {
        /// Whose certificate.
        subject: SubjectName,
        /// Its number.
        serial: String,
        /// When.
        at: UnixTime,
    },
    /// The list is too old to rely on.
    #[error("the revocation list of '{authority}' should have been renewed by {due}")]
    OutdatedList {
        /// Whose list.
        authority: SubjectName,
        /// Until when.
        due: UnixTime,
    },
    /// Somebody issued certificates who may not.
    #[error("'{0}' may not issue certificates")]
    MayNotIssue(SubjectName),
    /// The certificate is for something else than signing.
    #[error("the certificate of '{0}' is not for signing (keyUsage)")]
    MayNotSign(SubjectName),
}

impl Authority {
    /// Whether the first certificate was issued by this authority, through
    /// those after it in their order, and is valid now.
    pub fn admit(&self, chain: &[Certificate], now: UnixTime) -> Result<(), Refusal> {
        let (leaf, between) = chain.split_first().ok_or(Refusal::Empty)?;
        if !leaf.may_sign() {
            return Err(Refusal::MayNotSign(leaf.subject().clone()));
        }
        let mut current = leaf;
        // The authority itself may be part of the file; it issued itself.
        let between = between.iter().filter(|one| **one != self.certificate);
        for issuer in between {
            self.admit_issued(current, issuer, now)?;
            if issuer.may_issue() != Some(true) {
                return Err(Refusal::MayNotIssue(issuer.subject().clone()));
            }
            current = issuer;
        }
        self.admit_issued(current, &self.certificate, now)?;
        if self.certificate.may_issue() == Some(false) {
            return Err(Refusal::MayNotIssue(self.certificate.subject().clone()));
        }
        admit_date(&self.certificate, now)
    }

    fn admit_issued(
        &self,
        certificate: &Certificate,
        issuer: &Certificate,
        now: UnixTime,
    ) -> Result<(), Refusal> {
        let subject = || certificate.subject().clone();
        certificate
            .is_signed_by(issuer)
            .map_err(|reason| Refusal::Foreign {
                subject: subject(),
                reason,
            })?;
        admit_date(certificate, now)?;
        let Some(list) = &self.revoked else {
            return Ok(());
        };
        if let Some(due) = list.is_outdated(now) {
            return Err(Refusal::OutdatedList {
                authority: self.certificate.subject().clone(),
                due,
            });
        }
        // The list has numbers of the authority's own certificates only.
        let own = issuer == &self.certificate;
        match list.revoked(certificate).filter(|_| own) {
            Some(at) => Err(Refusal::Revoked {
                subject: subject(),
                serial: certificate.serial(),
                at,
            }),
            None => Ok(()),
        }
    }
}

fn admit_date(certificate: &Certificate, now: UnixTime) -> Result<(), Refusal> {
    match certificate.validity().refusal(now) {
        Some(reason) => Err(Refusal::NotValid {
            subject: certificate.subject().clone(),
            reason,
        }),
        None => Ok(()),
    }
}
