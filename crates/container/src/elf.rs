//! ELF reader: a section of a shared library and the libraries that it needs, read
//! from the file before it is loaded.
//!
//! Reads ELF of 32 and 64 bits in both byte orders (System V ABI, chapters 4 and 5),
//! and which machine the file is for. It reads only the requested parts and checks
//! every offset. A file with contradictions has no such section.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8] = b"\x7fELF";
/// Bytes of the file header that are read: all of it with 64 bits.
const FILE_HEADER_BYTES: u64 = 64;
const FILE_HEADER_BYTES_32: u64 = 52;
/// `DT_NEEDED`.
const NEEDED: u64 = 1;
/// `ET_DYN`.
const SHARED_OBJECT: u64 = 3;
/// Limit of a section's length. The sections read here are much shorter.
const SECTION_BYTES_MAX: u64 = 16 << 20;

/// The kind of machine that an ELF file is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfMachine {
    is_64_bit: bool,
    is_big_endian: bool,
    /// `e_machine`.
    number: u16,
}

impl ElfMachine {
    /// The machine of this program; `None` if its number is not known here.
    pub fn own() -> Option<Self> {
        let mut known = MACHINES.iter();
        let (number, _) = known.find(|(_, name)| *name == std::env::consts::ARCH)?;
        Some(Self {
            is_64_bit: cfg!(target_pointer_width = "64"),
            is_big_endian: cfg!(target_endian = "big"),
            number: *number,
        })
    }

    fn of(header: &[u8]) -> Option<Self> {
        let is_64_bit = match header.get(4)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let is_big_endian = match header.get(5)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let number = number(header, 18, 2, is_big_endian)?;
        Some(Self {
            is_64_bit,
            is_big_endian,
            number: u16::try_from(number).ok()?,
        })
    }

    fn fields(self) -> &'static FieldOffsets {
        if self.is_64_bit {
            &FIELDS_64
        } else {
            &FIELDS_32
        }
    }
}

/// `e_machine` and Rust's name of the architecture.
const MACHINES: [(u16, &str); 12] = [
    (3, "x86"),
    (8, "mips"),
    (8, "mips64"),
    (20, "powerpc"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv32"),
    (243, "riscv64"),
    (258, "loongarch64"),
];

impl fmt::Display for ElfMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match MACHINES.iter().find(|(number, _)| *number == self.number) {
            Some((_, name)) => f.write_str(name)?,
            None => write!(f, "ELF machine {}", self.number)?,
        }
        let bits = if self.is_64_bit { 64 } else { 32 };
        let order = if self.is_big_endian { "big" } else { "little" };
        write!(f, " ({bits} bits, {order}-endian)")
    }
}

/// Where the fields are with 32 or 64 bits.
struct FieldOffsets {
    /// Bytes of an address, an offset or a tag.
    word: usize,
    /// `e_shoff`.
    sections: usize,
    /// `e_shentsize`; `e_shnum` and `e_shstrndx` follow.
    section_header_size: usize,
    section_header_bytes: usize,
    /// `sh_offset`; `sh_size` follows.
    section_offset: usize,
}

const FIELDS_64: FieldOffsets = FieldOffsets {
    word: 8,
    sections: 40,
    section_header_size: 58,
    section_header_bytes: 64,
    section_offset: 24,
};

const FIELDS_32: FieldOffsets = FieldOffsets {
    word: 4,
    sections: 32,
    section_header_size: 46,
    section_header_bytes: 40,
    section_offset: 16,
};

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
    machine: ElfMachine,
    sections: Vec<u8>,
    names: Vec<u8>,
}

impl<'f> Elf<'f> {
    /// Reads the section table; `None` if the file is no shared library, for
    /// whatever machine.
    pub fn read(file: &'f dyn ByteSource) -> Option<Self> {
        let header = file
            .read_at(0, FILE_HEADER_BYTES)
            .or_else(|| file.read_at(0, FILE_HEADER_BYTES_32))?;
        if !header.starts_with(MAGIC) {
            return None;
        }
        let machine = ElfMachine::of(&header)?;
        let fields = machine.fields();
        let half = |at| number(&header, at, 2, machine.is_big_endian);
        let size = fields.section_header_size;
        if half(16)? != SHARED_OBJECT || half(size)? != fields.section_header_bytes as u64 {
            return None;
        }
        let bytes = half(size + 2)?.checked_mul(fields.section_header_bytes as u64)?;
        let at = number(&header, fields.sections, fields.word, machine.is_big_endian)?;
        let sections = file.read_at(at, bytes)?;
        let names_index = usize::try_from(half(size + 4)?).ok()?;
        let mut elf = Self {
            file,
            machine,
            sections,
            names: Vec::new(),
        };
        let names = elf.headers().nth(names_index)?;
        elf.names = elf.bytes_of(names)?;
        Some(elf)
    }

    /// The machine that it is for.
    pub fn machine(&self) -> ElfMachine {
        self.machine
    }

    /// The bytes of a section.
    pub fn section(&self, name: &str) -> Option<Vec<u8>> {
        let header = self.headers().find(|header| {
            let at = self.number(header, 0, 4);
            at.and_then(|at| text(&self.names, at)) == Some(name.as_bytes())
        })?;
        self.bytes_of(header)
    }

    /// Whether the dynamic linker loads that library before this one.
    pub fn needs(&self, library: &str) -> bool {
        let (Some(dynamic), Some(strings)) = (self.section(".dynamic"), self.section(".dynstr"))
        else {
            return false;
        };
        let word = self.machine.fields().word;
        dynamic.chunks_exact(2 * word).any(|entry| {
            let name = self.number(entry, word, word);
            let name = name.and_then(|at| text(&strings, at));
            self.number(entry, 0, word) == Some(NEEDED) && name == Some(library.as_bytes())
        })
    }

    fn headers(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.machine.fields().section_header_bytes;
        self.sections.chunks_exact(bytes)
    }

    /// The bytes that a section header refers to.
    fn bytes_of(&self, header: &[u8]) -> Option<Vec<u8>> {
        let fields = self.machine.fields();
        let field = |index| {
            let at = fields.section_offset + index * fields.word;
            self.number(header, at, fields.word)
        };
        self.file.read_at(field(0)?, field(1)?)
    }

    fn number(&self, bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
        number(bytes, offset, width, self.machine.is_big_endian)
    }
}

/// The bytes up to the next zero.
fn text(table: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = table.get(usize::try_from(offset).ok()?..)?;
    rest.split(|byte| *byte == 0).next()
}

fn number(bytes: &[u8], offset: usize, width: usize, is_big_endian: bool) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(width)?)?;
    let add = |number, byte: &u8| number << 8 | u64::from(*byte);
    Some(if is_big_endian {
        field.iter().fold(0, add)
    } else {
        field.iter().rev().fold(0, add)
    })
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
        assert_eq!(Some(elf.machine()), ElfMachine::own());
        assert!(elf.section(".text").is_some_and(|code| code.len() > 1000));
        assert!(elf.section(".nothing").is_none());
        assert!(elf.needs("libc.so.6"));
        assert!(!elf.needs("libc.so"));
    }

    /// A shared library with the sections that are read: names, strings, dynamic, code.
    fn library(machine: ElfMachine) -> Vec<u8> {
        let fields = machine.fields();
        let put = |file: &mut Vec<u8>, at: usize, width: usize, value: u64| {
            file.resize(file.len().max(at + width), 0);
            let bytes = value.to_be_bytes();
            let mut bytes = bytes[8 - width..].to_vec();
            if !machine.is_big_endian {
                bytes.reverse();
            }
            file[at..at + width].copy_from_slice(&bytes);
        };
        let class_and_order = [
            1 + u8::from(machine.is_64_bit),
            1 + u8::from(machine.is_big_endian),
        ];
        let mut file = [MAGIC, &class_and_order].concat();
        put(&mut file, 16, 2, SHARED_OBJECT);
        put(&mut file, 18, 2, machine.number.into());
        let bytes = fields.section_header_bytes;
        put(&mut file, fields.sections, fields.word, 64);
        put(&mut file, fields.section_header_size, 2, bytes as u64);
        put(&mut file, fields.section_header_size + 2, 2, 4);
        let names = b"\0.shstrtab\0.dynstr\0.dynamic\0.code\0";
        let mut dynamic = Vec::new();
        for (index, value) in [14, 1, NEEDED, 7, 0, 0].into_iter().enumerate() {
            put(&mut dynamic, index * fields.word, fields.word, value);
        }
        let contents = [names, &b"\0liba\0\0libc.so.6\0"[..], &dynamic, b"code"];
        let mut at = 64 + bytes * contents.len();
        for (index, (name, content)) in [1, 11, 19, 28].into_iter().zip(contents).enumerate() {
            let header = 64 + bytes * index;
            put(&mut file, header, 4, name);
            let place = header + fields.section_offset;
            put(&mut file, place, fields.word, at as u64);
            put(
                &mut file,
                place + fields.word,
                fields.word,
                content.len() as u64,
            );
            file.resize(file.len().max(at), 0);
            file.splice(at.., content.iter().copied());
            at += content.len();
        }
        file
    }

    fn machine(is_64_bit: bool, is_big_endian: bool, number: u16) -> ElfMachine {
        ElfMachine {
            is_64_bit,
            is_big_endian,
            number,
        }
    }

    #[test]
    fn libraries_of_every_word_size_and_byte_order_are_read() {
        for (target, name) in [
            (machine(true, false, 62), "x86_64 (64 bits, little-endian)"),
            (
                machine(true, false, 183),
                "aarch64 (64 bits, little-endian)",
            ),
            (machine(false, false, 40), "arm (32 bits, little-endian)"),
            (machine(true, true, 22), "s390x (64 bits, big-endian)"),
            (machine(false, true, 8), "mips (32 bits, big-endian)"),
            (
                machine(true, false, 4711),
                "ELF machine 4711 (64 bits, little-endian)",
            ),
        ] {
            let mut file = library(target);
            let elf = Elf::read(&file).expect(name);
            assert_eq!(elf.machine(), target);
            assert_eq!(elf.machine().to_string(), name);
            assert_eq!(
                elf.section(".code").as_deref(),
                Some(&b"code"[..]),
                "{name}"
            );
            assert!(elf.needs("libc.so.6") && !elf.needs("liba"), "{name}");
            for at in 0..file.len() {
                let was = std::mem::replace(&mut file[at], 0xff);
                exercise(&file);
                file[at] = was;
            }
            while file.pop().is_some() {
                exercise(&file);
            }
        }
    }

    #[test]
    fn truncated_and_damaged_files_do_not_panic() {
        let mut file = own_program();
        let whole = file.clone();
        let fields = ElfMachine::of(&file).expect("a machine").fields();
        let headers = number(
            &file,
            fields.sections,
            fields.word,
            cfg!(target_endian = "big"),
        );
        let headers = usize::try_from(headers.expect("there")).expect("fits");
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
