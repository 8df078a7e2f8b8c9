//! `LIKE`: `%` matches any text, `_` one character.

use core::cell::Cell;

/// Whether the whole of `text` looks like `pattern`. Where a `%` is tried again
/// only the last one is, so the cost is at most one length times the other.
/// Each step is taken from `steps_left`; at zero the answer means nothing.
pub(super) fn is_like(text: &[u8], pattern: &[u8], steps_left: &Cell<usize>) -> bool {
    let (mut at, mut want) = (0_usize, 0_usize);
    // Where to continue if the part after the last `%` does not match.
    let mut again: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(at) {
        let Some(left) = steps_left.get().checked_sub(1) else {
            return false;
        };
        steps_left.set(left);
        match pattern.get(want) {
            Some(b'%') => {
                want = want.saturating_add(1);
                again = Some((at, want));
            }
            Some(b'_') => {
                at = at.saturating_add(char_len(text, at));
                want = want.saturating_add(1);
            }
            Some(wanted) if wanted == byte => {
                at = at.saturating_add(1);
                want = want.saturating_add(1);
            }
            _ => {
                let Some((from, after)) = &mut again else {
                    return false;
                };
                *from = from.saturating_add(char_len(text, *from));
                (at, want) = (*from, *after);
            }
        }
    }
    let rest = pattern.get(want..).unwrap_or_default();
    rest.iter().all(|byte| *byte == b'%')
}

/// Bytes of the UTF-8 character at `at`; 1 where there is none.
fn char_len(text: &[u8], at: usize) -> usize {
    let is_inner = |byte: &&u8| **byte & 0xc0 == 0x80;
    let first = text.get(at).copied().unwrap_or_default();
    if first < 0xc0 {
        return 1;
    }
    let inner = text.get(at.saturating_add(1)..).unwrap_or_default();
    let inner = inner.iter().take(3).take_while(is_inner).count();
    inner.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    fn is_like(text: &[u8], pattern: &[u8]) -> bool {
        let steps_left = Cell::new(usize::MAX);
        super::is_like(text, pattern, &steps_left)
    }

    /// The definition, as slow as it is plain.
    fn oracle(text: &[char], pattern: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|skip| oracle(&text[skip..], rest)),
            Some(('_', rest)) => !text.is_empty() && oracle(&text[1..], rest),
            Some((c, rest)) => text.first() == Some(c) && oracle(&text[1..], rest),
        }
    }

    #[test]
    fn patterns_agree_with_their_definition() {
        let mut random = fastrand::Rng::with_seed(8);
        let mut alike = 0;
        for _ in 0..20_000 {
            let mut draw = |from: &[char], most| -> alloc::vec::Vec<char> {
                let len = random.usize(0..=most);
                (0..len).map(|_| from[random.usize(..from.len())]).collect()
            };
            let text = draw(&['a', 'b', '€'], 8);
            let pattern = draw(&['a', 'b', '€', '%', '_', '%'], 6);
            let string = |chars: &[char]| chars.iter().collect::<alloc::string::String>();
            let got = is_like(string(&text).as_bytes(), string(&pattern).as_bytes());
            assert_eq!(got, oracle(&text, &pattern), "{text:?} {pattern:?}");
            alike += usize::from(got);
        }
        assert!((2_000..18_000).contains(&alike), "{alike}");
    }
}
