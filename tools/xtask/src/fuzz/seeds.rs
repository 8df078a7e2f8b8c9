//! Seed corpus of fuzzing: the inputs of `verify/fuzz/seeds`, captured datagrams and
//! payloads, sorted by target, interface definitions, and some YAML. File names are
//! hashes of the contents, so writing them twice adds nothing.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use crate::checkout::root;

/// Number of message types that targets select by their first byte.
const CHOICES: u8 = 12;
/// Limit of a payload. Larger ones add no coverage.
const BYTES_MAX: usize = 2_000;

const YAML: [&str; 6] = [
    "{data: hello}",
    "names: [a, 'b', \"c\\n\"]\nflags: [true, false, yes]\n",
    "heads:\n- stamp: {sec: 1, nanosec: 2}\n  frame_id: map\n- {}\n",
    "node_entities_info_seq:\n- node_name: x\n  reader_gid_seq: []\n",
    "markers: [{points: [{x: 1e3, y: .nan, z: -.inf}], color: {a: 0x10}}]",
    "numbers: [1, 2.5]\nwide: [\"\\u00e9\", ~]\nraw: [a, 0, 255]\nshort: abcd\n",
];

/// Filter expressions over fields of common types, each with its parameter.
const FILTERS: [&str; 8] = [
    "data LIKE 'Hello%' AND data <> %0\0'Hello World: 7'",
    "header.stamp.sec BETWEEN 1 AND %0 OR header.frame_id = 'map'\x00200",
    "NOT (position[0] >= -1.5e-3 AND name[1] > 'a')\0",
    "pose.pose.position.x < 0x10 or twist.covariance[35] = %0\0-2.5",
    "is_dense = TRUE AND fields[0].name = 'x' AND height <> 0\0",
    "numbers[3] NOT BETWEEN 1 AND 2 AND short LIKE '__%'\0",
    "points[3].x > %0 AND color.a = 1 OR wide[0] = 'é'\0.5",
    "((data = 5))\0",
];

/// Writes all seeds below `corpus`. Returns their number.
pub fn write(corpus: &Path) -> Result<usize> {
    let mut seeds = Seeds { corpus, count: 0 };
    for text in YAML {
        for choice in 0..CHOICES {
            seeds.add("yaml", &[&[choice], text.as_bytes()].concat())?;
        }
    }
    for text in FILTERS {
        for choice in 0..CHOICES {
            let payload = [&[0, 1, 0, 0][..], &[choice; 64]].concat();
            let seed = [&[choice], text.as_bytes(), &[0], &payload].concat();
            seeds.add("filter", &seed)?;
        }
    }
    seeds.kept(&root().join("verify/fuzz/seeds"))?;
    seeds.bags(&root().join("crates/bag/tests/fixtures"))?;
    seeds.definitions(&root().join("crates/interfaces/definitions"))?;
    seeds.keystores(&root().join("crates/security/tests/fixtures"))?;
    for entry in fs::read_dir(root().join("crates/rtps/tests/vectors"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "rtps")
        {
            let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            seeds.capture(&bytes)?;
        }
    }
    Ok(seeds.count)
}

struct Seeds<'a> {
    corpus: &'a Path,
    count: usize,
}

impl Seeds<'_> {
    fn add(&mut self, target: &str, bytes: &[u8]) -> Result<()> {
        if bytes.len() > BYTES_MAX {
            Ok(())
        } else {
            self.add_whole(target, bytes)
        }
    }

    /// Adds an input of any size. Signed documents are useless if truncated.
    fn add_whole(&mut self, target: &str, bytes: &[u8]) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let folder = self.corpus.join(target);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("seed-{:016x}", hasher.finish()));
        self.count += usize::from(!path.exists());
        fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))
    }

    /// Adds the hexadecimal inputs of the repository.
    fn kept(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let (Some("hex"), Some(target)) = (
                path.extension().and_then(|e| e.to_str()),
                path.file_stem().and_then(|name| name.to_str()),
            ) else {
                continue;
            };
            let text = fs::read_to_string(&path)?;
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let digits = line.as_bytes().chunks(2);
                let byte = |pair: &[u8]| {
                    let pair = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(pair, 16).ok()
                };
                let bytes: Option<Vec<u8>> = digits.map(byte).collect();
                let bytes = bytes
                    .with_context(|| format!("{}: not hexadecimal: {line}", path.display()))?;
                self.add(target, &bytes)?;
            }
        }
        Ok(())
    }

    /// Adds the databases and the bags of ROS 1 in a folder.
    fn bags(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let target = match path.extension().and_then(|e| e.to_str()) {
                Some("db3") => "bag_sqlite",
                Some("bag") => "bag_ros1",
                _ => continue,
            };
            self.add_whole(target, &fs::read(&path)?)?;
        }
        Ok(())
    }

    fn definitions(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.definitions(&path)?;
                continue;
            }
            let kind = match path.extension().and_then(|e| e.to_str()) {
                Some("msg") => 0,
                Some("srv") => 1,
                Some("action") => 2,
                _ => continue,
            };
            self.add("interface_file", &[&[kind], &fs::read(&path)?[..]].concat())?;
        }
        Ok(())
    }

    /// Adds documents, certificates and keys of the fixtures' keystores.
    fn keystores(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let target = match name.as_ref() {
                _ if path.is_dir() => {
                    self.keystores(&path)?;
                    continue;
                }
                "governance.xml" => "security_governance",
                "permissions.xml" => "security_permissions",
                _ if name.ends_with(".p7s") => "security_smime",
                _ if name.ends_with(".pem") => "security_certificate",
                _ => continue,
            };
            self.add_whole(target, &fs::read(&path)?)?;
        }
        Ok(())
    }

    /// Adds the records of one capture file.
    fn capture(&mut self, file: &[u8]) -> Result<()> {
        let mut rest = file.strip_prefix(b"RTPSVEC1").unwrap_or_default();
        while let Some((head, after)) = rest.split_at_checked(20) {
            let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let Some((message, after)) = after.split_at_checked(length) else {
                break;
            };
            rest = after;
            self.add("message", message)?;
            // One step of the participants' script is a whole datagram.
            let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
            let [low, high] = length.to_le_bytes();
            self.add("participant", &[&[0x80, low, high], message].concat())?;
            for (writer, payload) in payloads(message) {
                self.payload(writer, payload)?;
            }
        }
        Ok(())
    }

    fn payload(&mut self, writer: [u8; 4], payload: &[u8]) -> Result<()> {
        match writer {
            [0, 1, 0, 0xc2] => self.add("participant_data", payload),
            [0, 0, 3 | 4, 0xc2] => self.add("endpoint_data", payload),
            [0, 2, 0, 0xc2] => self.add("liveliness_data", payload),
            _ => {
                for choice in 0..CHOICES {
                    let seed = [&[choice], payload].concat();
                    self.add("cdr", &seed)?;
                    self.add("dynamic", &seed)?;
                }
                Ok(())
            }
        }
    }
}

/// Writers and payloads of the DATA submessages of a little-endian message whose
/// inline QoS, if any, ends with a sentinel.
fn payloads(message: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let mut found = Vec::new();
    let mut rest = message.get(20..).unwrap_or_default();
    while let [id, flags, low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let body = match length {
            0 => after,
            _ => after.get(..length).unwrap_or_default(),
        };
        rest = after.get(body.len().max(1)..).unwrap_or_default();
        if *id == 0x15 && flags & 5 == 5 && body.len() > 20 {
            let writer = [body[8], body[9], body[10], body[11]];
            let mut payload = &body[20..];
            if flags & 2 != 0 {
                let end = payload.chunks(4).position(|word| word == [1, 0, 0, 0]);
                payload = end.map_or(&[], |end| &payload[end * 4 + 4..]);
            }
            found.push((writer, payload));
        }
        if length == 0 && *id != 0x01 && *id != 0x09 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_found_after_inline_qos() {
        let mut message = b"RTPS\x02\x03\x01\x50............".to_vec();
        message.extend_from_slice(&[0x09, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let qos = [0x71, 0, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0];
        let body = [
            &[
                0, 0, 16, 0, 0, 0, 0, 0, 0, 1, 0, 0xc2, 0, 0, 0, 0, 1, 0, 0, 0,
            ][..],
            &qos,
            b"\0\x03\0\0",
        ]
        .concat();
        message.extend_from_slice(&[0x15, 7, body.len() as u8, 0]);
        message.extend_from_slice(&body);
        assert_eq!(payloads(&message), [([0, 1, 0, 0xc2], &b"\0\x03\0\0"[..])]);
    }
}
