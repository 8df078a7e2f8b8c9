//! Broken MCAP files: ends at every record, wrong lengths, checksums, bombs. Each is a
//! clear error, or gives the messages that are whole, within a limit of memory.

use pteros_test_support::folder::Folder;
use std::path::Path;

use pteros_bag::mcap::Compression;
use pteros_bag::{BagMessage, BagOptions, BagReader, BagTopic, BagWriter};

const MESSAGES: u64 = 24;
/// Opcode and length.
const HEAD_BYTES: usize = 9;
const CHUNK: u8 = 6;
const FOOTER: u8 = 2;
/// The most memory of all cases together: the largest bomb announces 64 MiB.
const MEMORY_KIB_MAX: u64 = 400 << 10;

fn whole_file(compression: Compression) -> Vec<u8> {
    let name = format!("broken-{compression}");
    let folder = Folder::absent(&name);
    let options = BagOptions {
        compression,
        chunk_bytes: 400,
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let topic = BagTopic {
        name: "/a".into(),
        type_name: "std_msgs/msg/String".into(),
        definition: "string data\n".into(),
        serialization_format: "cdr".into(),
        ..BagTopic::default()
    };
    let channel = writer.add_topic(topic).unwrap();
    for n in 0..MESSAGES {
        writer.write(channel, n, n, &[n as u8; 70]).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    std::fs::read(folder.join(format!("{name}_0.mcap"))).unwrap()
}

/// Opcode and place of each record.
fn records(file: &[u8]) -> Vec<(u8, usize)> {
    let mut at = 8;
    let mut found = Vec::new();
    while at + HEAD_BYTES <= file.len() - 8 {
        found.push((file[at], at));
        at += HEAD_BYTES + usize::try_from(u64_at(file, at + 1)).unwrap();
    }
    found
}

fn u64_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

fn with_u64(file: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut changed = file.to_vec();
    changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
    changed
}

/// A file that has one chunk with these fields, and no summary.
fn with_chunk(compression: &str, announced: u64, stored: &[u8]) -> Vec<u8> {
    let whole = whole_file(Compression::None);
    let first_chunk = records(&whole).into_iter().find(|(op, _)| *op == CHUNK);
    let mut file = whole[..first_chunk.unwrap().1].to_vec();
    let mut content = Vec::new();
    content.extend([0; 16]);
    content.extend(announced.to_le_bytes());
    content.extend([0; 4]);
    content.extend(u32::try_from(compression.len()).unwrap().to_le_bytes());
    content.extend(compression.as_bytes());
    content.extend((stored.len() as u64).to_le_bytes());
    content.extend(stored);
    file.push(CHUNK);
    file.extend((content.len() as u64).to_le_bytes());
    file.extend(content);
    file
}

fn cases() -> Vec<(String, Vec<u8>)> {
    let mut cases = Vec::new();
    for compression in [Compression::None, Compression::Zstd] {
        let whole = whole_file(compression);
        for (number, (op, at)) in records(&whole).into_iter().enumerate() {
            let name = format!("{compression}, record {number} with opcode {op}");
            cases.push((format!("{name}: ends before it"), whole[..at].to_vec()));
            cases.push((
                format!("{name}: ends in its length"),
                whole[..at + 5].to_vec(),
            ));
            let length = u64_at(&whole, at + 1);
            for wrong in [0, length + 1, length.saturating_sub(1), 1 << 40, u64::MAX] {
                let changed = with_u64(&whole, at + 1, wrong);
                cases.push((format!("{name}: length {wrong}"), changed));
            }
            let mut unknown = whole.clone();
            unknown[at] = 0;
            cases.push((format!("{name}: opcode 0"), unknown));
            if op == CHUNK {
                for wrong in [0, 1, 1 << 33, u64::MAX] {
                    let changed = with_u64(&whole, at + HEAD_BYTES + 16, wrong);
                    cases.push((format!("{name}: announces {wrong}"), changed));
                }
                let mut checksum = whole.clone();
                checksum[at + HEAD_BYTES + 24] ^= 1;
                cases.push((format!("{name}: checksum"), checksum));
                let mut data = whole.clone();
                data[at + HEAD_BYTES + 60] ^= 0x40;
                cases.push((format!("{name}: data"), data));
            }
            if op == FOOTER {
                for wrong in [1, at as u64 + 1, u64::MAX] {
                    let changed = with_u64(&whole, at + HEAD_BYTES, wrong);
                    cases.push((format!("{name}: summary at {wrong}"), changed));
                }
            }
        }
    }
    let zeros = vec![0; 64 << 20];
    for (name, packed) in [
        ("zstd", compressed(&zeros, true)),
        ("lz4", compressed(&zeros, false)),
    ] {
        for announced in [0, 100, 64 << 20, 1 << 40] {
            let bomb = with_chunk(name, announced, &packed);
            cases.push((format!("{name} bomb that announces {announced}"), bomb));
        }
        cases.push((format!("no {name}"), with_chunk(name, 100, &[7; 80])));
    }
    // 500 MiB of zeros in some kilobytes: no ratio of a recording. LZ4 has no such ratio.
    let bomb = with_chunk("zstd", 500 << 20, &compressed_zeros(500 << 20));
    cases.push(("zstd chunk of zeros".into(), bomb));
    cases.push(("gzip".into(), with_chunk("gzip", 5, &[1, 2, 3])));
    cases.push(("long name".into(), with_chunk(&"x".repeat(5000), 5, &[1])));
    cases
}

fn compressed(data: &[u8], is_zstd: bool) -> Vec<u8> {
    if is_zstd {
        return zstd::bulk::compress(data, 1).unwrap();
    }
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    std::io::Write::write_all(&mut encoder, data).unwrap();
    encoder.finish().unwrap()
}

/// Compresses zeros without having them.
fn compressed_zeros(count: u64) -> Vec<u8> {
    let zeros = std::io::Read::take(std::io::repeat(0), count);
    zstd::stream::encode_all(zeros, 1).unwrap()
}

fn all(reader: &mut BagReader) -> Vec<BagMessage> {
    reader.messages(Default::default()).collect()
}

#[test]
fn every_broken_file_is_an_error_or_gives_what_is_whole() {
    // It measures the memory of its process.
    if !pteros_test_support::own_process!() {
        return;
    }
    let mut whole = BagReader::from_bytes(whole_file(Compression::None)).unwrap();
    let expected = all(&mut whole);
    assert_eq!(expected.len() as u64, MESSAGES);
    let cases = cases();
    assert!(cases.len() > 100, "{}", cases.len());
    let mut partly = 0;
    for (name, file) in cases {
        match BagReader::from_bytes(file) {
            Err(error) => assert!(error.to_string().contains("(memory)"), "{name}: {error}"),
            Ok(mut reader) => {
                let read = all(&mut reader);
                let mut rest = expected.iter();
                for message in &read {
                    let found = rest.any(|known| known == message);
                    assert!(found, "{name}: {message:?} was not written");
                }
                let is_known = !reader.problems().is_empty() || !reader.is_complete();
                assert!(
                    is_known || read.len() == expected.len(),
                    "{name}: {}",
                    read.len()
                );
                partly += usize::from(!read.is_empty() && read.len() < expected.len());
            }
        }
    }
    assert!(partly > 30, "{partly} files were read in part");
    if let Some(peak) = peak_memory_kib() {
        assert!(peak < MEMORY_KIB_MAX, "{peak} KiB at most");
    }
}

/// The most memory that this process had at once, where Linux says so.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
