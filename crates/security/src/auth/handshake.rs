//! Authentication handshake with one peer (DDS Security 1.1 §8.3.2). A rejected
//! message changes nothing: an attacker can send in a peer's name, and a forged
//! message must not end a valid handshake. It ends by success or by its timeout.

use std::fmt;

use super::handshake_tokens::{
    AuthenticatedPeer, Contribution, HandshakeRejection, HandshakeSide, credentials,
    credentials_hash, has_name, has_nul, name_of, sign, token, validate_peer, verify,
};
use super::handshakes::LocalIdentity;
use super::key_agreement::{Agreement, NAME};
use super::token::Token;
use crate::crypto::{KeyMaterial, key_exchange_material};
use crate::date::UnixTime;
use pteros_rtps::id::GuidPrefix;

/// The shared secret of both sides of a handshake.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedSecret {
    secret: [u8; 32],
    challenge_1: [u8; 32],
    challenge_2: [u8; 32],
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret")
    }
}

impl SharedSecret {
    /// The key-exchange material, which protects the exchange of all other keys.
    pub fn key_exchange_material(&self) -> KeyMaterial {
        key_exchange_material(&self.secret, &self.challenge_1, &self.challenge_2)
    }
}

impl Drop for SharedSecret {
    fn drop(&mut self) {
        self.secret = std::hint::black_box([0; 32]);
    }
}

/// A handshake with one peer.
pub(super) struct Handshake {
    peer: GuidPrefix,
    side: HandshakeSide,
    /// Generated once, because it is announced before it is used.
    challenge: [u8; 32],
    /// For a renewal with a known peer: the challenge that it announced or
    /// requested with.
    renewal_challenge: Option<[u8; 32]>,
    state: HandshakeState,
}

enum HandshakeState {
    /// The replier, before a request arrives.
    Waiting,
    /// The initiator, before a reply arrives.
    Requested {
        agreement: Box<Agreement>,
        ours: Contribution,
    },
    /// The replier, before the final arrives. It may have replied to several
    /// requests, because an attacker could have sent one in the peer's name. Latest
    /// last.
    Replied(Vec<Replied>),
    /// Completed. An initiator repeats its final message on request.
    Done {
        answered: Option<(Token, Token)>,
        challenges: [[u8; 32]; 2],
    },
}

struct Replied {
    request: Token,
    reply: Token,
    ours: Contribution,
    theirs: Contribution,
    secret: [u8; 32],
    peer: AuthenticatedPeer,
}

impl Replied {
    /// Checks that this final message of the peer belongs to this reply.
    fn check_final(&self, last: &Token) -> Result<(), HandshakeRejection> {
        self.theirs
            .check_repeated_in(last, HandshakeSide::Initiator)?;
        self.ours.check_repeated_in(last, HandshakeSide::Replier)?;
        verify(
            &self.peer,
            last,
            HandshakeSide::Initiator,
            &self.theirs,
            &self.ours,
        )
    }
}

/// The action after a message.
#[derive(Debug)]
pub(super) enum HandshakeAction {
    Nothing,
    /// Send this repeatedly until a reply arrives.
    Send(Token),
    SendOnce(Token),
    /// The peer has authenticated. The initiator still has to send its final
    /// message.
    Authenticated {
        peer: Box<AuthenticatedPeer>,
        secret: SharedSecret,
        last: Option<Token>,
    },
}

impl Handshake {
    /// The participant with the smaller prefix is the initiator (DDS Security 1.1
    /// §8.3.2.9).
    pub fn new(own: &LocalIdentity, peer: GuidPrefix) -> Result<Self, HandshakeRejection> {
        let mut challenge = [0; 32];
        aws_lc_rs::rand::fill(&mut challenge).map_err(|_| crate::key::RandomnessFailed)?;
        Ok(Self {
            peer,
            side: if own.prefix.0 < peer.0 {
                HandshakeSide::Initiator
            } else {
                HandshakeSide::Replier
            },
            challenge,
            renewal_challenge: None,
            state: HandshakeState::Waiting,
        })
    }

    /// A renewal beside a completed handshake, because the peer restarted it with
    /// this challenge; see [`restart_challenge`](Self::restart_challenge).
    pub fn for_renewal(
        own: &LocalIdentity,
        peer: GuidPrefix,
        peer_challenge: [u8; 32],
    ) -> Result<Self, HandshakeRejection> {
        let mut handshake = Self::new(own, peer)?;
        handshake.renewal_challenge = Some(peer_challenge);
        Ok(handshake)
    }

    /// For a completed handshake: the challenge by which this token shows that the
    /// peer has restarted. Not authenticated.
    pub fn restart_challenge(&self, token: &Token) -> Option<[u8; 32]> {
        let HandshakeState::Done { challenges, .. } = &self.state else {
            return None;
        };
        let word = token.class.strip_prefix(super::handshake_tokens::CLASS)?;
        let name = match (word, self.side) {
            ("+AuthReq", HandshakeSide::Initiator) => FUTURE_CHALLENGE,
            ("+Req", HandshakeSide::Replier) => HandshakeSide::Initiator.challenge(),
            _ => return None,
        };
        let peer_challenge = token.get(name)?.try_into().ok()?;
        (!challenges.contains(&peer_challenge)).then_some(peer_challenge)
    }

    /// For the initiator of a renewal: the peer has announced another challenge
    /// since.
    pub fn expect_challenge(&mut self, peer_challenge: [u8; 32]) {
        self.renewal_challenge = Some(peer_challenge);
    }

    pub fn is_initiator(&self) -> bool {
        self.side == HandshakeSide::Initiator
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, HandshakeState::Done { .. })
    }

    /// The announcement of the challenge (AuthReq).
    pub fn announcement(&self) -> Token {
        let mut announcement = token("+AuthReq", None, &[]);
        let challenge = self.challenge.to_vec();
        announcement
            .binary
            .push((FUTURE_CHALLENGE.into(), challenge));
        announcement
    }

    /// The request, if this side is the initiator.
    pub fn begin(
        &mut self,
        own: &LocalIdentity,
        with_nul: bool,
    ) -> Result<Option<Token>, HandshakeRejection> {
        if self.side == HandshakeSide::Replier {
            return Ok(None);
        }
        let credentials = credentials(own, NAME, with_nul);
        let agreement = Agreement::generate()?;
        let ours = Contribution {
            hash: credentials_hash(&credentials)?,
            key: agreement.public().to_vec(),
            challenge: self.challenge,
        };
        let request = token(
            "+Req",
            Some(&credentials),
            &[(HandshakeSide::Initiator, &ours)],
        );
        self.state = HandshakeState::Requested {
            agreement: Box::new(agreement),
            ours,
        };
        Ok(Some(request))
    }

    /// Handles a token of the peer. Its announced challenge is ignored: an attacker
    /// can announce in its name, and signatures cover the challenge.
    pub fn handle(
        &mut self,
        own: &LocalIdentity,
        got: &Token,
        now: UnixTime,
    ) -> Result<HandshakeAction, HandshakeRejection> {
        let word = got
            .class
            .strip_prefix(super::handshake_tokens::CLASS)
            .unwrap_or("");
        match (word, self.side) {
            ("+Req", HandshakeSide::Replier) => self.handle_request(own, got, now),
            ("+Reply", HandshakeSide::Initiator) => self.handle_reply(own, got, now),
            ("+Final", HandshakeSide::Replier) => self.handle_final(got),
            _ => Ok(HandshakeAction::Nothing),
        }
    }

    fn handle_request(
        &mut self,
        own: &LocalIdentity,
        got: &Token,
        now: UnixTime,
    ) -> Result<HandshakeAction, HandshakeRejection> {
        let before = match &self.state {
            HandshakeState::Waiting => &[][..],
            HandshakeState::Replied(before) => before,
            HandshakeState::Requested { .. } | HandshakeState::Done { .. } => {
                return Ok(HandshakeAction::Nothing);
            }
        };
        if let Some(same) = before.iter().find(|replied| replied.request == *got) {
            return Ok(HandshakeAction::Send(same.reply.clone()));
        }
        // A different request needs a handshake, and a challenge, of its own.
        if self.renewal_challenge.is_some() && !before.is_empty() {
            return Ok(HandshakeAction::Nothing);
        }
        let peer = validate_peer(own, got, self.peer, now)?;
        let theirs = Contribution::read(got, HandshakeSide::Initiator, credentials_hash(got)?)?;
        // The difference is in unsigned data, so either request is answered by
        // either reply. The peer accepts only one.
        if let Some(same) = before.iter().find(|replied| replied.theirs == theirs) {
            return Ok(HandshakeAction::Send(same.reply.clone()));
        }
        let is_first = before.is_empty();
        let name = name_of(got, "c.kagree_algo")?;
        let agreement = Agreement::answering(&name, &theirs.key)?
            .ok_or_else(|| HandshakeRejection::Algorithm(name.clone()))?;
        let credentials = credentials(own, &name, has_nul(got));
        let secret = agreement
            .secret(&theirs.key)
            .ok_or(HandshakeRejection::Malformed("dh1"))?;
        let ours = Contribution {
            hash: credentials_hash(&credentials)?,
            key: agreement.public().to_vec(),
            challenge: self.challenge,
        };
        let parts = [
            (HandshakeSide::Replier, &ours),
            (HandshakeSide::Initiator, &theirs),
        ];
        let mut reply = token("+Reply", Some(&credentials), &parts);
        let signature = sign(own, HandshakeSide::Replier, &ours, &theirs)?;
        reply.binary.push(("signature".into(), signature));
        let replied = Replied {
            request: got.clone(),
            reply: reply.clone(),
            ours,
            theirs,
            secret,
            peer,
        };
        match &mut self.state {
            HandshakeState::Replied(all) => {
                if all.len() >= REPLIES {
                    all.remove(0);
                }
                all.push(replied);
            }
            state => *state = HandshakeState::Replied(vec![replied]),
        }
        Ok(if is_first {
            HandshakeAction::Send(reply)
        } else {
            HandshakeAction::SendOnce(reply)
        })
    }

    fn handle_reply(
        &mut self,
        own: &LocalIdentity,
        got: &Token,
        now: UnixTime,
    ) -> Result<HandshakeAction, HandshakeRejection> {
        let (agreement, ours) = match &self.state {
            HandshakeState::Requested { agreement, ours } => (agreement, ours),
            HandshakeState::Done {
                answered: Some((reply, last)),
                ..
            } if reply == got => return Ok(HandshakeAction::SendOnce(last.clone())),
            _ => return Ok(HandshakeAction::Nothing),
        };
        ours.check_repeated_in(got, HandshakeSide::Initiator)?;
        let theirs = Contribution::read(got, HandshakeSide::Replier, credentials_hash(got)?)?;
        if self
            .renewal_challenge
            .is_some_and(|peer_challenge| peer_challenge != theirs.challenge)
        {
            // The peer has not lost its state, and replies to a request that an
            // attacker caused.
            return Err(HandshakeRejection::Mismatch("challenge2"));
        }
        has_name(got, "c.kagree_algo", NAME)?;
        let peer = validate_peer(own, got, self.peer, now)?;
        verify(&peer, got, HandshakeSide::Replier, &theirs, ours)?;
        let secret = agreement
            .secret(&theirs.key)
            .ok_or(HandshakeRejection::Malformed("dh2"))?;
        let parts = [
            (HandshakeSide::Initiator, ours),
            (HandshakeSide::Replier, &theirs),
        ];
        let mut last = token("+Final", None, &parts);
        let signature = sign(own, HandshakeSide::Initiator, ours, &theirs)?;
        last.binary.push(("signature".into(), signature));
        let secret = SharedSecret {
            secret,
            challenge_1: ours.challenge,
            challenge_2: theirs.challenge,
        };
        self.state = HandshakeState::Done {
            answered: Some((got.clone(), last.clone())),
            challenges: [ours.challenge, theirs.challenge],
        };
        Ok(HandshakeAction::Authenticated {
            peer: Box::new(peer),
            secret,
            last: Some(last),
        })
    }

    fn handle_final(&mut self, got: &Token) -> Result<HandshakeAction, HandshakeRejection> {
        let HandshakeState::Replied(all) = &mut self.state else {
            return Ok(HandshakeAction::Nothing);
        };
        let mut rejection = None;
        let place = all.iter().position(|replied| {
            let believed = replied.check_final(got);
            believed.map_err(|why| rejection = Some(why)).is_ok()
        });
        let Some(replied) = place.map(|place| all.swap_remove(place)) else {
            return rejection.map_or(Ok(HandshakeAction::Nothing), Err);
        };
        self.state = HandshakeState::Done {
            answered: None,
            challenges: [replied.theirs.challenge, replied.ours.challenge],
        };
        let secret = SharedSecret {
            secret: replied.secret,
            challenge_1: replied.theirs.challenge,
            challenge_2: replied.ours.challenge,
        };
        Ok(HandshakeAction::Authenticated {
            peer: Box::new(replied.peer),
            secret,
            last: None,
        })
    }
}

/// Requests in one peer's name with a pending reply. Beyond that the oldest is
/// dropped.
const REPLIES: usize = 4;
/// Property that announces a challenge (DDS Security 1.1 §9.3.2.5.1).
const FUTURE_CHALLENGE: &str = "future_challenge";

#[cfg(test)]
mod tests {
    use super::super::guid::adjusted_prefix;
    use super::super::modp::{Encoding, Modp};
    use super::*;
    use crate::enclave::Enclave;
    use aws_lc_rs::digest::{SHA256, digest};
    use pteros_rtps::id::EntityId;

    const NOW: UnixTime = UnixTime(1_893_456_000);

    fn own(candidate: u8) -> LocalIdentity {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/sros2/enclaves/talker"
        );
        let enclave = Enclave::load(folder.as_ref(), NOW).unwrap();
        let certificate = &enclave.identity.chain[0];
        let prefix = adjusted_prefix(certificate, GuidPrefix([candidate; 12]));
        let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
        LocalIdentity {
            participant_data: [&[0x00, 0x50, 0, 16], &guid[..], &[0, 1, 0, 0]].concat(),
            enclave,
            prefix,
        }
    }

    #[test]
    fn a_request_in_the_2048_bit_group_is_replied_to_in_the_same_encoding() {
        let mut both = [own(1), own(2)];
        both.sort_by_key(|own| own.prefix);
        let [initiator, replier] = both;
        for encoding in [Encoding::Octets, Encoding::Integer] {
            let mut handshake = Handshake::new(&replier, initiator.prefix).unwrap();
            let credentials = credentials(&initiator, "DH+MODP-2048-256", false);
            let key = Modp::generate().unwrap();
            let first = Contribution {
                hash: credentials_hash(&credentials).unwrap(),
                key: key.public(encoding),
                challenge: [3; 32],
            };
            let request = token(
                "+Req",
                Some(&credentials),
                &[(HandshakeSide::Initiator, &first)],
            );
            let reply = match handshake.handle(&replier, &request, NOW).unwrap() {
                HandshakeAction::Send(reply) => reply,
                other => panic!("{other:?}"),
            };
            assert_eq!(reply.get("c.kagree_algo"), Some(&b"DH+MODP-2048-256"[..]));
            let hash = credentials_hash(&reply).unwrap();
            let second = Contribution::read(&reply, HandshakeSide::Replier, hash).unwrap();
            assert_eq!(Encoding::of(&second.key), encoding);

            let parts = [
                (HandshakeSide::Initiator, &first),
                (HandshakeSide::Replier, &second),
            ];
            let mut last = token("+Final", None, &parts);
            let signature = sign(&initiator, HandshakeSide::Initiator, &first, &second).unwrap();
            last.binary.push(("signature".into(), signature));
            let Ok(HandshakeAction::Authenticated { secret, .. }) =
                handshake.handle(&replier, &last, NOW)
            else {
                panic!("not authenticated");
            };
            let agreed = key.agree(&second.key).unwrap();
            let agreed = digest(&SHA256, &agreed);
            let keys = key_exchange_material(agreed.as_ref(), &[3; 32], &second.challenge);
            assert_eq!(secret.key_exchange_material(), keys);
        }
    }

    #[test]
    fn an_unknown_key_agreement_algorithm_is_named() {
        let mut both = [own(1), own(2)];
        both.sort_by_key(|own| own.prefix);
        let [initiator, replier] = both;
        let mut handshake = Handshake::new(&replier, initiator.prefix).unwrap();
        let credentials = credentials(&initiator, "X25519", true);
        let ours = Contribution {
            hash: credentials_hash(&credentials).unwrap(),
            key: vec![4; 65],
            challenge: [3; 32],
        };
        let request = token(
            "+Req",
            Some(&credentials),
            &[(HandshakeSide::Initiator, &ours)],
        );
        let refused = handshake.handle(&replier, &request, NOW).unwrap_err();
        assert_eq!(refused, HandshakeRejection::Algorithm("X25519".into()));
        assert!(!handshake.is_done());
    }
}
