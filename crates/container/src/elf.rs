//! ELF reader: a section of a shared library and the libraries that it needs, read
//! from the file before it is loaded.
//!
//! Reads 64-bit little-endian ELF (System V ABI, chapters 4 and 5). It reads only
//! the requested parts and checks every offset. A file with contradictions has no
//! such section.

use std::fs::File;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8] = b"\x7fELF";
/// `e_ident`: 64 bits, little-endian.
const CLASS_AND_DATA: &[u8] = &[2, 1];
const FILE_HEADER_BYTES: u64 = 64;
const SECTION_HEADER_BYTES: usize = 64;
/// Bytes of an entry of the dynamic section.
const DYNAMIC_ENTRY_BYTES: usize = 16;
/// `DT_NEEDED`.
const NEEDED: u64 = 1;
/// `ET_DYN`.
const SHARED_OBJECT: u64 = 3;
/// Limit of a section's length. The sections read here are much shorter.
const SECTION_BYTES_MAX: u64 = 16 << 20;

/// Random access to the bytes of a file.
pub trait ByteSource {
    /// Exactly these bytes; `None` if the file is shorter.
    fn read_at(&self, offset: u64, bytes: u64) -> Option<Vec<u8>>;
}

impl ByteSource for File {
    fn read_at(&self, offset: u64, bytes: u64) -> Option<Vec<u8>> {
        if bytes > SECTION_BYTES_MAX {
            return None;
        }
        let mut part = vec![0; usize::try_from(bytes).ok()?];
        self.read_exact_at(&mut part, offset).ok()?;
        Some(part)
    }
}

/// An open shared library file.
pub struct Elf<'f> {
    file: &'f dyn ByteSource,
    sections: Vec<u8>,
    names: Vec<u8>,
}

impl<'f> Elf<'f> {
    /// Reads the section table; `None` if the file is no shared library for this
    /// kind of machine.
    pub fn read(file: &'f dyn ByteSource) -> Option<Self> {
        let header = file.read_at(0, FILE_HEADER_BYTES)?;
        let is_elf = header.starts_with(MAGIC)
            && header.get(4..6)? == CLASS_AND_DATA
            && number(&header, 16, 2)? == SHARED_OBJECT
            && number(&header, 58, 2)? == SECTION_HEADER_BYTES as u64;
        if !is_elf {
            return None;
        }
        let bytes = number(&header, 60, 2)?.checked_mul(SECTION_HEADER_BYTES as u64)?;
        let sections = file.read_at(number(&header, 40, 8)?, bytes)?;
        let names_index = usize::try_from(number(&header, 62, 2)?).ok()?;
        let names = section_bytes(
            file,
            sections
                .chunks_exact(SECTION_HEADER_BYTES)
                .nth(names_index)?,
        )?;
        Some(Self {
            file,
            sections,
            names,
        })
    }

    /// The bytes of a section.
    pub fn section(&self, name: &str) -> Option<Vec<u8>> {
        let mut headers = self.sections.chunks_exact(SECTION_HEADER_BYTES);
        let header = headers.find(|header| {
            let at = number(header, 0, 4);
            at.and_then(|at| text(&self.names, at)) == Some(name.as_bytes())
        })?;
        section_bytes(self.file, header)
    }

    /// Whether the dynamic linker loads that library before this one.
    pub fn needs(&self, library: &str) -> bool {
        let (Some(dynamic), Some(strings)) = (self.section(".dynamic"), self.section(".dynstr"))
        else {
            return false;
        };
        dynamic.chunks_exact(DYNAMIC_ENTRY_BYTES).any(|entry| {
            let name = number(entry, 8, 8).and_then(|at| text(&strings, at));
            number(entry, 0, 8) == Some(NEEDED) && name == Some(library.as_bytes())
        })
    }
}

/// The bytes that a section header refers to.
fn section_bytes(file: &dyn ByteSource, header: &[u8]) -> Option<Vec<u8>> {
    file.read_at(number(header, 24, 8)?, number(header, 32, 8)?)
}

/// The bytes up to the next zero.
fn text(table: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = table.get(usize::try_from(offset).ok()?..)?;
    rest.split(|byte| *byte == 0).next()
}

fn number(bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(width)?)?;
    let digits = field.iter().rev();
    Some(digits.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ByteSource for Vec<u8> {
        fn read_at(&self, offset: u64, bytes: u64) -> Option<Vec<u8>> {
            let end = usize::try_from(offset.checked_add(bytes)?).ok()?;
            Some(self.get(usize::try_from(offset).ok()?..end)?.to_vec())
        }
    }

    fn own_program() -> Vec<u8> {
        std::fs::read("/proc/self/exe").expect("the test's own program")
    }

    #[test]
    fn sections_and_needed_libraries_of_a_real_file_are_found() {
        let file = File::open("/proc/self/exe").expect("the test's own program");
        let elf = Elf::read(&file).expect("a position-independent program");
        assert!(elf.section(".text").is_some_and(|code| code.len() > 1000));
        assert!(elf.section(".nothing").is_none());
        assert!(elf.needs("libc.so.6"));
        assert!(!elf.needs("libc.so"));
    }

    #[test]
    fn truncated_and_damaged_files_do_not_panic() {
        let mut file = own_program();
        let whole = file.clone();
        let headers = usize::try_from(number(&file, 40, 8).expect("there")).expect("fits");
        for at in (0..64).chain(headers..headers + 640) {
            for value in [0, 1, 0x7f, 0xff] {
                let was = std::mem::replace(&mut file[at], value);
                exercise(&file);
                file[at] = was;
            }
        }
        assert_eq!(file, whole);
        for parts in (0..200).rev() {
            file.truncate(whole.len() / 200 * parts + parts);
            exercise(&file);
        }
    }

    fn exercise(file: &Vec<u8>) {
        if let Some(elf) = Elf::read(file) {
            let _ = (elf.section(".dynstr"), elf.needs("libc.so.6"));
        }
    }
}
