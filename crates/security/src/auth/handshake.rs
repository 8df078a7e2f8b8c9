//! One peer's handshake. What cannot be believed changes nothing: anybody can
//! send in a peer's name, so a forged message must not end an honest
//! handshake. It ends when it succeeds or when its time is over.

use std::fmt;

use super::agreement::{Agreement, NAME};
use super::exchange::{
    Contribution, Peer, Rejection, Side, credentials, credentials_hash, has_nul, judge, name_of,
    named, sign, token, verify,
};
use super::handshakes::Own;
use super::token::Token;
use crate::crypto::{KeyMaterial, key_exchange_material};
use crate::date::UnixTime;
use pteros_rtps::id::GuidPrefix;

/// What both ends of a handshake know, and nobody else.
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
    /// The keys with which all other keys are exchanged.
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
    side: Side,
    /// Drawn once, since it is announced before it is used.
    challenge: [u8; 32],
    /// One with a peer that is known: what it announced, or asked with, this time.
    renews: Option<[u8; 32]>,
    state: State,
}

enum State {
    /// The replier, until a request comes.
    Waiting,
    /// The initiator, until a reply comes.
    Requested {
        agreement: Box<Agreement>,
        ours: Contribution,
    },
    /// The replier, until the final comes: to requests that differ, since anybody
    /// could have sent another one in the peer's name. The latest last.
    Replied(Vec<Replied>),
    /// Over. An initiator repeats its last word as long as it is asked to.
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
    peer: Peer,
}

impl Replied {
    /// Whether the last word of the handshake is the peer's, to this reply.
    fn is_closed_by(&self, last: &Token) -> Result<(), Rejection> {
        self.theirs.is_in(last, Side::Initiator)?;
        self.ours.is_in(last, Side::Replier)?;
        verify(&self.peer, last, Side::Initiator, &self.theirs, &self.ours)
    }
}

/// What to do after a message.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing.
    Nothing,
    /// Send this until something comes.
    Send(Token),
    /// Send this once.
    Once(Token),
    /// The peer is who it says; the initiator still has to send its last word.
    Authenticated {
        peer: Box<Peer>,
        secret: SharedSecret,
        last: Option<Token>,
    },
}

impl Handshake {
    /// The one with the smaller prefix begins (DDS Security 1.1 §8.3.2.9).
    pub fn new(own: &Own, peer: GuidPrefix) -> Result<Self, Rejection> {
        let mut challenge = [0; 32];
        aws_lc_rs::rand::fill(&mut challenge).map_err(|_| crate::key::RandomnessFailed)?;
        Ok(Self {
            peer,
            side: match own.prefix.0 < peer.0 {
                true => Side::Initiator,
                false => Side::Replier,
            },
            challenge,
            renews: None,
            state: State::Waiting,
        })
    }

    /// One beside another that is done, since the peer begins anew: with this
    /// challenge, see [`begins_anew`](Self::begins_anew).
    pub fn renewing(own: &Own, peer: GuidPrefix, said: [u8; 32]) -> Result<Self, Rejection> {
        let mut handshake = Self::new(own, peer)?;
        handshake.renews = Some(said);
        Ok(handshake)
    }

    /// Where this one is done: the challenge by which the token shows that the
    /// peer is at another one. Anybody could have said it.
    pub fn begins_anew(&self, token: &Token) -> Option<[u8; 32]> {
        let State::Done { challenges, .. } = &self.state else {
            return None;
        };
        let word = token.class.strip_prefix(super::exchange::CLASS)?;
        let name = match (word, self.side) {
            ("+AuthReq", Side::Initiator) => FUTURE_CHALLENGE,
            ("+Req", Side::Replier) => Side::Initiator.challenge(),
            _ => return None,
        };
        let said = token.get(name)?.try_into().ok()?;
        (!challenges.contains(&said)).then_some(said)
    }

    /// The initiator of a renewal: the peer has announced another challenge since.
    pub fn expect(&mut self, said: [u8; 32]) {
        self.renews = Some(said);
    }

    pub fn is_initiator(&self) -> bool {
        self.side == Side::Initiator
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    /// What is announced before: the challenge to come.
    pub fn announcement(&self) -> Token {
        let mut announcement = token("+AuthReq", None, &[]);
        let challenge = self.challenge.to_vec();
        announcement
            .binary
            .push((FUTURE_CHALLENGE.into(), challenge));
        announcement
    }

    /// The request, if it is ours to begin.
    pub fn begin(&mut self, own: &Own, with_nul: bool) -> Result<Option<Token>, Rejection> {
        if self.side == Side::Replier {
            return Ok(None);
        }
        let credentials = credentials(own, NAME, with_nul);
        let agreement = Agreement::generate()?;
        let ours = Contribution {
            hash: credentials_hash(&credentials)?,
            key: agreement.public().to_vec(),
            challenge: self.challenge,
        };
        let request = token("+Req", Some(&credentials), &[(Side::Initiator, &ours)]);
        self.state = State::Requested {
            agreement: Box::new(agreement),
            ours,
        };
        Ok(Some(request))
    }

    /// Takes a token of the peer. Its announcement of a challenge is not looked
    /// at: anybody can announce in its name, and signatures cover the challenge.
    pub fn handle(&mut self, own: &Own, got: &Token, now: UnixTime) -> Result<Outcome, Rejection> {
        let word = got.class.strip_prefix(super::exchange::CLASS).unwrap_or("");
        match (word, self.side) {
            ("+Req", Side::Replier) => self.handle_request(own, got, now),
            ("+Reply", Side::Initiator) => self.handle_reply(own, got, now),
            ("+Final", Side::Replier) => self.handle_final(got),
            _ => Ok(Outcome::Nothing),
        }
    }

    fn handle_request(
        &mut self,
        own: &Own,
        got: &Token,
        now: UnixTime,
    ) -> Result<Outcome, Rejection> {
        let before = match &self.state {
            State::Waiting => &[][..],
            State::Replied(before) => before,
            State::Requested { .. } | State::Done { .. } => return Ok(Outcome::Nothing),
        };
        if let Some(same) = before.iter().find(|replied| replied.request == *got) {
            return Ok(Outcome::Send(same.reply.clone()));
        }
        // Another request has a handshake, and a challenge, of its own then.
        if self.renews.is_some() && !before.is_empty() {
            return Ok(Outcome::Nothing);
        }
        let peer = judge(own, got, self.peer, now)?;
        let theirs = Contribution::read(got, Side::Initiator, credentials_hash(got)?)?;
        // What differs is nothing that is signed, so either is answered by either reply;
        // but the peer believes one alone.
        if let Some(same) = before.iter().find(|replied| replied.theirs == theirs) {
            return Ok(Outcome::Send(same.reply.clone()));
        }
        let is_first = before.is_empty();
        let name = name_of(got, "c.kagree_algo")?;
        let agreement = Agreement::answering(&name, &theirs.key)?
            .ok_or_else(|| Rejection::Algorithm(name.clone()))?;
        let credentials = credentials(own, &name, has_nul(got));
        let secret = agreement
            .secret(&theirs.key)
            .ok_or(Rejection::Malformed("dh1"))?;
        let ours = Contribution {
            hash: credentials_hash(&credentials)?,
            key: agreement.public().to_vec(),
            challenge: self.challenge,
        };
        let parts = [(Side::Replier, &ours), (Side::Initiator, &theirs)];
        let mut reply = token("+Reply", Some(&credentials), &parts);
        let signature = sign(own, Side::Replier, &ours, &theirs)?;
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
            State::Replied(all) => {
                if all.len() >= REPLIES {
                    all.remove(0);
                }
                all.push(replied);
            }
            state => *state = State::Replied(vec![replied]),
        }
        Ok(match is_first {
            true => Outcome::Send(reply),
            false => Outcome::Once(reply),
        })
    }

    fn handle_reply(
        &mut self,
        own: &Own,
        got: &Token,
        now: UnixTime,
    ) -> Result<Outcome, Rejection> {
        let (agreement, ours) = match &self.state {
            State::Requested { agreement, ours } => (agreement, ours),
            State::Done {
                answered: Some((reply, last)),
                ..
            } if reply == got => return Ok(Outcome::Once(last.clone())),
            _ => return Ok(Outcome::Nothing),
        };
        ours.is_in(got, Side::Initiator)?;
        let theirs = Contribution::read(got, Side::Replier, credentials_hash(got)?)?;
        if self.renews.is_some_and(|said| said != theirs.challenge) {
            // It knows us still, and answers what somebody made us ask.
            return Err(Rejection::Mismatch("challenge2"));
        }
        named(got, "c.kagree_algo", NAME)?;
        let peer = judge(own, got, self.peer, now)?;
        verify(&peer, got, Side::Replier, &theirs, ours)?;
        let secret = agreement
            .secret(&theirs.key)
            .ok_or(Rejection::Malformed("dh2"))?;
        let parts = [(Side::Initiator, ours), (Side::Replier, &theirs)];
        let mut last = token("+Final", None, &parts);
        let signature = sign(own, Side::Initiator, ours, &theirs)?;
        last.binary.push(("signature".into(), signature));
        let secret = SharedSecret {
            secret,
            challenge_1: ours.challenge,
            challenge_2: theirs.challenge,
        };
        self.state = State::Done {
            answered: Some((got.clone(), last.clone())),
            challenges: [ours.challenge, theirs.challenge],
        };
        Ok(Outcome::Authenticated {
            peer: Box::new(peer),
            secret,
            last: Some(last),
        })
    }

    fn handle_final(&mut self, got: &Token) -> Result<Outcome, Rejection> {
        let State::Replied(all) = &mut self.state else {
            return Ok(Outcome::Nothing);
        };
        let mut rejection = None;
        let place = all.iter().position(|replied| {
            let believed = replied.is_closed_by(got);
            believed.map_err(|why| rejection = Some(why)).is_ok()
        });
        let Some(replied) = place.map(|place| all.swap_remove(place)) else {
            return rejection.map_or(Ok(Outcome::Nothing), Err);
        };
        self.state = State::Done {
            answered: None,
            challenges: [replied.theirs.challenge, replied.ours.challenge],
        };
        let secret = SharedSecret {
            secret: replied.secret,
            challenge_1: replied.theirs.challenge,
            challenge_2: replied.ours.challenge,
        };
        Ok(Outcome::Authenticated {
            peer: Box::new(replied.peer),
            secret,
            last: None,
        })
    }
}

/// Requests in one peer's name that are replied to at once; beyond that the oldest is
/// given up.
const REPLIES: usize = 4;
/// What announces a challenge to come (DDS Security 1.1 §9.3.2.5.1).
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

    fn own(candidate: u8) -> Own {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/sros2/enclaves/talker"
        );
        let enclave = Enclave::load(folder.as_ref(), NOW).unwrap();
        let certificate = &enclave.identity.chain[0];
        let prefix = adjusted_prefix(certificate, GuidPrefix([candidate; 12]));
        let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
        Own {
            participant_data: [&[0x00, 0x50, 0, 16], &guid[..], &[0, 1, 0, 0]].concat(),
            enclave,
            prefix,
        }
    }

    #[test]
    fn who_begins_in_the_2048_bit_group_is_answered_in_the_same_words_and_form() {
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
            let request = token("+Req", Some(&credentials), &[(Side::Initiator, &first)]);
            let reply = match handshake.handle(&replier, &request, NOW).unwrap() {
                Outcome::Send(reply) => reply,
                other => panic!("{other:?}"),
            };
            assert_eq!(reply.get("c.kagree_algo"), Some(&b"DH+MODP-2048-256"[..]));
            let hash = credentials_hash(&reply).unwrap();
            let second = Contribution::read(&reply, Side::Replier, hash).unwrap();
            assert_eq!(Encoding::of(&second.key), encoding);

            let parts = [(Side::Initiator, &first), (Side::Replier, &second)];
            let mut last = token("+Final", None, &parts);
            let signature = sign(&initiator, Side::Initiator, &first, &second).unwrap();
            last.binary.push(("signature".into(), signature));
            let Ok(Outcome::Authenticated { secret, .. }) = handshake.handle(&replier, &last, NOW)
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
    fn an_unknown_way_to_agree_is_named() {
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
        let request = token("+Req", Some(&credentials), &[(Side::Initiator, &ours)]);
        let refused = handshake.handle(&replier, &request, NOW).unwrap_err();
        assert_eq!(refused, Rejection::Algorithm("X25519".into()));
        assert!(!handshake.is_done());
    }
}
