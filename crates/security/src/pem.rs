//! PEM (RFC 7468): labelled base64 among any other text, as OpenSSL writes a
//! certificate below its description.

use base64ct::{Base64, Encoding};

use crate::diagnostic::Diagnostic;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// `CERTIFICATE`, `PRIVATE KEY` …
    pub label: String,
    /// Its content.
    pub der: Vec<u8>,
}

/// All blocks of a file, in their order.
pub(crate) fn blocks(file: &str, text: &[u8]) -> Result<Vec<Block>, Diagnostic> {
    let fault = |label: &str, reason: &str| {
        Diagnostic::new(
            file,
            "PEM block",
            label,
            reason,
            "copy the whole file again",
        )
    };
    // A SEQUENCE longer than 127 bytes, as all of these are.
    if let [0x30, 0x81..=0x84, ..] = text {
        let remedy = "convert it to PEM: `openssl x509`, `pkey` or `crl` with `-inform DER`";
        return Err(Diagnostic::new(file, "file", "", "is DER, not PEM", remedy));
    }
    let text = String::from_utf8_lossy(text);
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines().map(str::trim) {
        let begins = line
            .strip_prefix("-----BEGIN ")
            .and_then(|rest| rest.strip_suffix("-----"));
        let ends = line
            .strip_prefix("-----END ")
            .and_then(|rest| rest.strip_suffix("-----"));
        match (&mut open, begins, ends) {
            (None, Some(label), _) => open = Some((label.into(), String::new())),
            (None, None, _) => {}
            (Some((label, base64)), None, Some(end)) => {
                if end != label {
                    return Err(fault(label, "the END label differs from the BEGIN label"));
                }
                let der = Base64::decode_vec(base64)
                    .map_err(|_| fault(label, "is not base64, or encrypted"))?;
                blocks.push(Block {
                    label: std::mem::take(label),
                    der,
                });
                open = None;
            }
            (Some((label, _)), Some(_), _) => return Err(fault(label, "has no END line")),
            (Some((_, base64)), None, None) => base64.push_str(line),
        }
    }
    match open {
        Some((label, _)) => Err(fault(&label, "has no END line")),
        None => Ok(blocks),
    }
}

/// As a block with this label.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let base64 = Base64::encode_string(der);
    let lines: String = wrapped(&base64);
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// In lines of 64 characters.
pub(crate) fn wrapped(base64: &str) -> String {
    let mut lines = String::with_capacity(base64.len().saturating_add(base64.len() / 32));
    let mut rest = base64;
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_among_other_text_and_are_read_back() {
        let text = format!(
            "Certificate:\n  Data: …\n{}\nmore\n{}",
            encode("CERTIFICATE", &[7; 100]),
            encode("EC PARAMETERS", &[]),
        );
        let read = blocks("f", text.as_bytes()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[0].label.as_str(), read[0].der.len()),
            ("CERTIFICATE", 100)
        );
        for bad in [
            "-----BEGIN A-----\nQUJD\n",
            "-----BEGIN A-----\nQUJD\n-----END B-----",
            "-----BEGIN A-----\nQU%D\n-----END A-----",
            "-----BEGIN A-----\n-----BEGIN A-----\n-----END A-----",
        ] {
            assert!(blocks("f", bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
