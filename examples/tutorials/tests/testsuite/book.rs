//! The code blocks of the book are the code that is compiled.
//!
//! A fenced block whose info string holds `file=PATH` (`rust,file=…`,
//! `xml,file=…`) must stand verbatim in that file; the path begins at the root of
//! the repository. In a template of `pteros new` (`….txt`) the placeholders stand
//! for the package `my_robot`.

use std::path::{Path, PathBuf};

use pteros::prelude::*;

/// One fenced code block.
struct Block {
    page: String,
    line: usize,
    info: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn blocks() -> Vec<Block> {
    let mut all = Vec::new();
    for folder in ["start", "tutorials", "how_to", "reference"] {
        let folder = root().join("docs").join(folder);
        let entries = std::fs::read_dir(&folder).expect("a folder of the book");
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "md") {
                add_blocks(&path, &mut all);
            }
        }
    }
    all
}

fn add_blocks(path: &Path, all: &mut Vec<Block>) {
    let mut open: Option<Block> = None;
    for (index, line) in read(path).lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, open.take()) {
            (Some(info), None) => {
                open = Some(Block {
                    page: path.display().to_string(),
                    line: index + 1,
                    info: info.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(block)) => all.push(block),
            (None, Some(mut block)) => {
                block.text += line;
                block.text += "\n";
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: an open code block", path.display());
}

fn file_of(block: &Block) -> Option<&str> {
    let mut words = block.info.split([',', ' ']);
    words.find_map(|word| word.strip_prefix("file="))
}

#[test]
fn code_blocks_stand_in_the_files_they_name() {
    let mut count = 0;
    for block in &blocks() {
        let Some(file) = file_of(block) else {
            continue;
        };
        let mut text = read(&root().join(file));
        if file.ends_with(".txt") {
            text = text.replace("@NAME@", "my_robot");
            for name in ["@NODE@", "@LIBRARY@"] {
                text = text.replace(name, "my_robot");
            }
            text = text.replace("@TYPE@", "MyRobot");
        }
        assert!(
            text.contains(&block.text),
            "{}:{}: this block is not in {file}:\n{}",
            block.page,
            block.line,
            block.text
        );
        count += 1;
    }
    assert!(count >= 12, "only {count} blocks name a file");
}

#[test]
fn rust_code_names_its_file() {
    for block in &blocks() {
        if block.info.starts_with("rust") {
            assert!(
                file_of(block).is_some(),
                "{}:{}: add file=PATH, so that the code is compiled",
                block.page,
                block.line
            );
        }
    }
}

#[test]
fn every_program_stands_in_the_book() {
    let all = blocks();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    for entry in std::fs::read_dir(folder).expect("programs").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        let path = format!("examples/tutorials/src/bin/{name}");
        let is_shown = all.iter().any(|block| file_of(block) == Some(&path));
        assert!(is_shown, "no page shows {path}");
    }
}

#[test]
fn an_image_is_written_and_read_in_place() {
    let domain = 30 + (std::process::id() * 13 + 60) % 70;
    let context = Context::with_options(ContextOptions::local(domain)).expect("a context");
    let brightest = tutorials::how_to::large_images::run(&context).expect("an image");
    assert_eq!(brightest, Some(200));
}
