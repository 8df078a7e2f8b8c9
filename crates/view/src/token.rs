//! Token of a server: 128 random bits in hexadecimal. A page or program that does not know
//! it gets no data.

use std::hint::black_box;
use std::io;

/// A secret text.
pub struct Token(String);

impl Token {
    /// A new token.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// The text, for the URL.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in constant time: the length is no secret, the content is.
    pub fn is(&self, given: &str) -> bool {
        let pairs = self.0.bytes().zip(given.bytes());
        let difference = pairs.fold(0, |seen, (own, other)| black_box(seen | (own ^ other)));
        given.len() == self.0.len() && difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_accepted() {
        let token = Token::random().unwrap();
        let text = token.text().to_owned();
        assert_eq!(text.len(), 32);
        assert!(token.is(&text));
        assert!(!token.is("") && !token.is(&text[1..]) && !token.is(&format!("{text}0")));
        let last = if text.ends_with('0') { "1" } else { "0" };
        assert!(!token.is(&format!("{}{last}", &text[..31])));
        assert_ne!(Token::random().unwrap().text(), text);
    }
}
