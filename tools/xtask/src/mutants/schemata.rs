//! Mutant schemata (Untch, 1993): one source that contains all mutants. Each place
//! becomes a branch on the number of the mutant that the process is to be.

use std::ops::Range;

use super::sites::Site;

/// Which mutant a process is: its number, from 1. Without it none.
pub const MUTANT: &str = "PTEROS_MUTANT";

/// A file to which a process adds the number of each place that it comes to.
pub const REACHED: &str = "PTEROS_MUTANTS_REACHED";

/// The code that a crate with mutants has in addition, at the end of its root.
pub fn switch(count: usize) -> String {
    let places = count + 1;
    format!(
        r#"
#[allow(warnings, clippy::all)]
mod mutant_switch {{
    extern crate std;
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{{AtomicBool, Ordering}};
    static MUTANT: OnceLock<usize> = OnceLock::new();
    static REACHED: OnceLock<Option<std::ffi::OsString>> = OnceLock::new();
    static PLACES: [AtomicBool; {places}] = [const {{ AtomicBool::new(false) }}; {places}];
    pub(crate) fn is(mutant: usize) -> bool {{
        if !PLACES[mutant].load(Ordering::Relaxed) && !PLACES[mutant].swap(true, Ordering::Relaxed) {{
            if let Some(path) = REACHED.get_or_init(|| std::env::var_os("{REACHED}")) {{
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                if let Ok(mut file) = file {{
                    let _ = file.write_all(std::format!("{{mutant}}\n").as_bytes());
                }}
            }}
        }}
        *MUTANT.get_or_init(|| {{
            let number = std::env::var("{MUTANT}").ok();
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        }}) == mutant
    }}
}}
"#
    )
}

/// A source with mutants, and where each is in it.
pub struct Instrumented {
    pub text: String,
    /// Bytes of a place in the text, and its mutant.
    pub ranges: Vec<(Range<usize>, usize)>,
}

/// Puts the mutants of one source in: each site with its number, in the order of
/// their starts, those that contain others first.
pub fn instrument(source: &str, sites: &[(usize, &Site)]) -> Instrumented {
    let mut sites = sites.to_vec();
    sites.sort_by_key(|(_, site)| (site.range.start, usize::MAX - site.range.end));
    let mut output = Instrumented {
        text: String::with_capacity(source.len() * 2),
        ranges: Vec::new(),
    };
    output.write(source, 0..source.len(), &sites);
    output
}

impl Instrumented {
    /// Writes a part of the source with the sites in it.
    fn write(&mut self, source: &str, part: Range<usize>, sites: &[(usize, &Site)]) {
        let mut at = part.start;
        let mut rest = sites;
        while let Some(((mutant, site), after)) = rest.split_first() {
            self.text += source.get(at..site.range.start).unwrap_or_default();
            let begin = self.text.len();
            let condition = format!("(if crate::mutant_switch::is({mutant}) {{ ");
            self.text += &condition;
            self.text += &site.mutated;
            self.text += " } else { ";
            let is_within = |(_, inner): &&(usize, &Site)| inner.range.start < site.range.end;
            let (inner, others) = after.split_at(after.iter().take_while(is_within).count());
            self.write(source, site.range.clone(), inner);
            self.text += " })";
            self.ranges.push((begin..self.text.len(), *mutant));
            at = site.range.end;
            rest = others;
        }
        self.text += source.get(at..part.end).unwrap_or_default();
    }

    /// The mutant at a byte: the innermost one, or else the nearest before it in the
    /// same item.
    pub fn mutant_at(&self, byte: usize) -> Option<usize> {
        let around = self
            .ranges
            .iter()
            .filter(|(range, _)| range.contains(&byte));
        let innermost = around.min_by_key(|(range, _)| range.len());
        let before = || {
            let ended = self.ranges.iter().filter(|(range, _)| range.end <= byte);
            let nearest = ended.max_by_key(|(range, _)| range.end);
            nearest.filter(|(range, _)| {
                let between = self.text.get(range.end..byte).unwrap_or_default();
                !between.contains("\n}")
            })
        };
        innermost.or_else(before).map(|(_, mutant)| *mutant)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::sites::sites_in;
    use super::*;

    #[test]
    fn places_within_places_are_each_a_branch() {
        let source = "fn f(a: u8) -> bool { a + 1 < 3 }";
        let sites = sites_in("shm", Path::new("a.rs"), source).unwrap();
        let numbered: Vec<_> = sites
            .iter()
            .enumerate()
            .map(|(n, site)| (n + 1, site))
            .collect();
        let result = instrument(source, &numbered);
        let (outer, inner) = if sites[0].title().contains('<') {
            (1, 2)
        } else {
            (2, 1)
        };
        let wanted = format!(
            "fn f(a: u8) -> bool {{ (if crate::mutant_switch::is({outer}) {{ a + 1 <= 3 }} else {{ \
             (if crate::mutant_switch::is({inner}) {{ a - 1 }} else {{ a + 1 }}) < 3 }}) }}"
        );
        assert_eq!(result.text, wanted);
        let of = |word: &str| result.mutant_at(result.text.find(word).unwrap());
        assert_eq!(of("a - 1"), Some(inner));
        assert_eq!(of("<= 3"), Some(outer));
        assert_eq!(result.mutant_at(0), None);
        let after = instrument(&format!("{source}\nfn g() {{\n}}\nfn h() {{}}"), &numbered);
        let of = |word: &str| after.mutant_at(after.text.find(word).unwrap());
        assert_eq!((of("g()"), of("h()")), (Some(outer), None));
    }
}
