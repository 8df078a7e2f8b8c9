//! Identity and permissions tokens in SPDP (DDS Security 1.1 §9.3.2.1, §9.4.2.2).
//! They show a peer whether a handshake makes sense, and prove nothing.

use super::cdr::{CdrReader, CdrWriter};
use super::handshake_tokens::CLASS;
use super::token::Token;

impl Token {
    /// The identity token. It names no certificate and no authority. A peer does not
    /// need them before the handshake, and vendors compare them as text, each in its
    /// own form.
    pub fn identity() -> Self {
        Self::announced(CLASS)
    }

    /// The permissions token, also without names.
    pub fn permissions() -> Self {
        Self::announced("DDS:Access:Permissions:1.0")
    }

    fn announced(class: &str) -> Self {
        Self {
            class: class.into(),
            ..Self::default()
        }
    }

    /// Whether a handshake with the owner of this identity token is possible: the
    /// same plug-in, any minor version.
    pub fn is_identity(&self) -> bool {
        let minor = self.class.strip_prefix("DDS:Auth:PKI-DH:1.");
        minor.is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit()))
    }

    /// Encodes the value of a parameter, padded to words.
    pub fn to_parameter(&self, big_endian: bool) -> Vec<u8> {
        let mut writer = CdrWriter::new(big_endian);
        self.write(&mut writer);
        writer.align(4);
        writer.into_bytes()
    }

    /// Decodes the value of a parameter; `None` if it is malformed.
    pub fn from_parameter(value: &[u8], big_endian: bool) -> Option<Self> {
        Self::read(&mut CdrReader::new(value, big_endian))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        let pairs = hexadecimal.as_bytes().chunks(2);
        pairs.map(|digits| pair(digits).unwrap()).collect()
    }

    #[test]
    fn tokens_of_cyclone_and_fast_dds_are_read_and_ours_read_back() {
        let cyclone = "140000004444533a417574683a504b492d44483a312e30000000000000000000";
        let token = Token::from_parameter(&bytes(cyclone), false).unwrap();
        assert!(token.is_identity() && token.properties.is_empty());
        assert_eq!(token.to_parameter(false), bytes(cyclone));
        let fast = "140000004444533a417574683a504b492d44483a312e3000040000000c0000006464732e636572\
                    742e736e000d0000002f434e3d5c2f74616c6b6572000000000e0000006464732e636572742e616c\
                    676f0000000d00000045434453412d534841323536000000000a0000006464732e63612e736e0000\
                    000c0000002f434e3d73726f73324341000c0000006464732e63612e616c676f000d000000454344\
                    53412d5348413235360000000000000000";
        let token = Token::from_parameter(&bytes(fast), false).unwrap();
        assert!(token.is_identity());
        assert_eq!(
            token.properties[2],
            ("dds.ca.sn".into(), "/CN=sros2CA".into())
        );

        for ours in [Token::identity(), Token::permissions()] {
            for big_endian in [false, true] {
                let value = ours.to_parameter(big_endian);
                assert_eq!(value.len() % 4, 0);
                assert_eq!(
                    Token::from_parameter(&value, big_endian).as_ref(),
                    Some(&ours)
                );
                for length in 0..value.len() - 8 {
                    assert_eq!(Token::from_parameter(&value[..length], big_endian), None);
                }
            }
        }
        assert!(Token::identity().is_identity());
        assert!(!Token::permissions().is_identity());
    }
}
