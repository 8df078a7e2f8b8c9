//! Lines of a process's output, whose bytes arrive in pieces.

/// Largest line that is kept until it ends. A longer one is written in parts.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The beginning of a line of one stream.
#[derive(Debug, Default)]
pub struct OutputLines {
    rest: Vec<u8>,
}

impl OutputLines {
    /// Adds bytes and passes each whole line on, without its end (`\n` or `\r\n`).
    pub fn push(&mut self, bytes: &[u8], mut write: impl FnMut(&[u8])) {
        // There is no end in the rest.
        let (mut start, mut searched) = (0, self.rest.len());
        self.rest.extend_from_slice(bytes);
        loop {
            let left = &self.rest[start..];
            let mut new = left[searched - start..].iter();
            let end = new.position(|byte| *byte == b'\n');
            let end = end.map(|end| searched - start + end);
            if end.unwrap_or(left.len()) > LINE_BYTES_MAX {
                let end = part_of(left);
                write(&left[..end]);
                start += end;
            } else if let Some(end) = end {
                let line = &left[..end];
                write(line.strip_suffix(b"\r").unwrap_or(line));
                start += end + 1;
            } else {
                break;
            }
            searched = searched.max(start);
        }
        self.rest.drain(..start);
    }

    /// Takes the last part, which will not become a line.
    pub fn take_rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then_some(rest)
    }
}

/// The length of the part of a long line that is written. A character stays whole: the bytes
/// after its first one are 0b10xx_xxxx.
fn part_of(line: &[u8]) -> usize {
    let is_start = |end: &usize| line.get(*end).is_none_or(|byte| byte & 0xc0 != 0x80);
    let mut ends = (LINE_BYTES_MAX - 3..=LINE_BYTES_MAX).rev();
    ends.find(is_start).unwrap_or(LINE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_whatever_the_pieces() {
        let text = "one\r\nzwei é\n\nlast €".as_bytes();
        for size in 1..text.len() {
            let (mut lines, mut found) = (OutputLines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.push(piece, |line| found.push(line.to_vec()));
            }
            assert_eq!(found, [&b"one"[..], "zwei é".as_bytes(), b""], "{size}");
            assert_eq!(lines.take_rest().as_deref(), Some("last €".as_bytes()));
            assert_eq!(lines.take_rest(), None);
        }
    }

    #[test]
    fn a_line_without_an_end_is_written_in_parts_of_whole_characters() {
        let text = "€".repeat(LINE_BYTES_MAX);
        let (mut lines, mut found) = (OutputLines::default(), String::new());
        for piece in text.as_bytes().chunks(1000) {
            lines.push(piece, |line| {
                assert!(line.len() <= LINE_BYTES_MAX);
                found += std::str::from_utf8(line).unwrap();
            });
        }
        let rest = lines.take_rest().unwrap();
        assert!(rest.len() <= LINE_BYTES_MAX);
        assert_eq!(found + std::str::from_utf8(&rest).unwrap(), text);
    }
}
