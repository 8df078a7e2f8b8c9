//! MODP key agreement: the 2048-bit group of RFC 5114 §2.3, whose exponents have
//! 256 bits, in constant time. Cyclone DDS sends its numbers as ASN.1 INTEGER, Fast
//! DDS and DDS Security 1.2 as big-endian octets. Both are read, and replies use
//! the form of the request.

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U256, U2048};
use der::asn1::UintRef;
use der::{Decode, Encode};

use crate::key::RandomnessFailed;

/// A private key of the group.
pub(super) struct Modp(U256);

/// Encoding of numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// ASN.1 INTEGER in DER.
    Integer,
    /// Big-endian octets.
    Octets,
}

impl Encoding {
    /// The encoding of this number.
    pub fn of(number: &[u8]) -> Self {
        match UintRef::from_der(number) {
            Ok(_) => Self::Integer,
            Err(_) => Self::Octets,
        }
    }
}

impl Modp {
    pub fn generate() -> Result<Self, RandomnessFailed> {
        // About every second draw is below the order.
        for _ in 0..DRAWS {
            let mut bytes = [0; 32];
            aws_lc_rs::rand::fill(&mut bytes).map_err(|_| RandomnessFailed)?;
            let drawn = U256::from_be_slice(&bytes);
            if drawn > U256::ONE && drawn < order() {
                return Ok(Self(drawn));
            }
        }
        Err(RandomnessFailed)
    }

    /// The public key.
    pub fn public(&self, encoding: Encoding) -> Vec<u8> {
        let public = power(&U2048::from_be_hex(GENERATOR), &self.0);
        let octets = octets(&public);
        match encoding {
            Encoding::Octets => octets,
            Encoding::Integer => UintRef::new(&octets)
                .and_then(|number| number.to_der())
                .unwrap_or_default(),
        }
    }

    /// The shared value, as OpenSSL gives it: without leading zeros. `None` if the
    /// peer's number is not in the group's prime-order part, where small orders
    /// would reveal the key.
    pub fn agree(&self, peer: &[u8]) -> Option<Vec<u8>> {
        let octets_of = match UintRef::from_der(peer) {
            Ok(number) => number.as_bytes(),
            Err(_) => peer,
        };
        let start = octets_of.iter().position(|octet| *octet != 0)?;
        let significant = octets_of.get(start..)?;
        let mut padded = [0; 256];
        let at = padded.len().checked_sub(significant.len())?;
        padded.get_mut(at..)?.copy_from_slice(significant);
        let number = U2048::from_be_slice(&padded);
        let valid = number > U2048::ONE
            && number < U2048::from_be_hex(PRIME)
            && power(&number, &order()) == U2048::ONE;
        let agreed = valid.then(|| power(&number, &self.0))?;
        let all = octets(&agreed);
        let start = all.iter().position(|octet| *octet != 0)?;
        all.get(start..).map(<[u8]>::to_vec)
    }
}

impl Drop for Modp {
    fn drop(&mut self) {
        self.0 = std::hint::black_box(U256::ZERO);
    }
}

fn power(base: &U2048, exponent: &U256) -> U2048 {
    let Some(prime) = Odd::new(U2048::from_be_hex(PRIME)).into_option() else {
        return U2048::ZERO;
    };
    let group = FixedMontyParams::new_vartime(prime);
    FixedMontyForm::new(base, &group).pow(exponent).retrieve()
}

fn order() -> U256 {
    U256::from_be_hex(ORDER)
}

fn octets(number: &U2048) -> Vec<u8> {
    number.to_be_bytes().as_ref().to_vec()
}

/// Limit of draws; this many draws above the order do not happen.
const DRAWS: usize = 256;

const PRIME: &str = "\
    87A8E61DB4B6663CFFBBD19C651959998CEEF608660DD0F25D2CEED4435E3B00E00DF8F1D61957D4\
    FAF7DF4561B2AA3016C3D91134096FAA3BF4296D830E9A7C209E0C6497517ABD5A8A9D306BCF67ED\
    91F9E6725B4758C022E0B1EF4275BF7B6C5BFC11D45F9088B941F54EB1E59BB8BC39A0BF12307F5C\
    4FDB70C581B23F76B63ACAE1CAA6B7902D52526735488A0EF13C6D9A51BFA4AB3AD8347796524D8E\
    F6A167B5A41825D967E144E5140564251CCACB83E6B486F6B3CA3F7971506026C0B857F689962856\
    DED4010ABD0BE621C3A3960A54E710C375F26375D7014103A4B54330C198AF126116D2276E11715F\
    693877FAD7EF09CADB094AE91E1A1597";

const GENERATOR: &str = "\
    3FB32C9B73134D0B2E77506660EDBD484CA7B18F21EF205407F4793A1A0BA12510DBC15077BE463F\
    FF4FED4AAC0BB555BE3A6C1B0C6B47B1BC3773BF7E8C6F62901228F8C28CBB18A55AE31341000A65\
    0196F931C77A57F2DDF463E5E9EC144B777DE62AAAB8A8628AC376D282D6ED3864E67982428EBC83\
    1D14348F6F2F9193B5045AF2767164E1DFC967C1FB3F2E55A4BD1BFFE83B9C80D052B985D182EA0A\
    DB2A3B7313D3FE14C8484B1E052588B9B7D2BBD2DF016199ECD06E1557CD0915B3353BBB64E0EC37\
    7FD028370DF92B52C7891428CDC67EB6184B523D1DB246C32F63078490F00EF8D647D148D4795451\
    5E2327CFEF98C582664B4C0F6CC41659";

const ORDER: &str = "8CF83642A709A097B447997640129DA299B1A47D1EB3750BA308B0FE64F5FBD3";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_agreement_works_with_both_encodings() {
        let (ours, theirs) = (Modp::generate().unwrap(), Modp::generate().unwrap());
        for encoding in [Encoding::Integer, Encoding::Octets] {
            assert_eq!(Encoding::of(&ours.public(encoding)), encoding);
            let agreed = ours.agree(&theirs.public(encoding)).unwrap();
            assert_eq!(Some(agreed), theirs.agree(&ours.public(encoding)));
        }
    }

    /// Computed with Python's pow.
    #[test]
    fn modular_powers_equal_those_of_python() {
        let key = Modp(U256::from_u64(81985529216486895));
        let public = key.public(Encoding::Octets);
        assert_eq!(public[..8], [63, 253, 96, 30, 194, 66, 25, 20]);
        assert_eq!(public[248..], [133, 162, 124, 192, 235, 133, 243, 137]);
    }

    #[test]
    fn numbers_of_small_order_are_refused() {
        let key = Modp::generate().unwrap();
        let mut minus_one = octets(&U2048::from_be_hex(PRIME));
        minus_one[255] -= 1;
        let two = [2];
        for bad in [
            &[][..],
            &[0],
            &[1],
            &two,
            &minus_one,
            &[0xff; 256],
            &[7; 300],
        ] {
            assert_eq!(key.agree(bad), None);
        }
    }
}
