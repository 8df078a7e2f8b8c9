//! The parts of the module `os` that read: paths and the environment.

use std::path::Path;

use super::fault::Outcome;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::value::{Kind, Object, Value};

/// The functions of `os.path`.
pub(super) const PATH_FUNCTIONS: &[&str] = &[
    "basename", "dirname", "exists", "isabs", "isdir", "isfile", "join", "normpath", "split",
    "splitext",
];

/// `os`, with the environment that it shows.
pub(super) struct OsModule {
    environment: Value,
}

impl OsModule {
    pub fn new(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let entries = environment.into_iter();
        let entries = entries.map(|(name, value)| (name.into(), value.into()));
        let dictionary = super::dictionary::Dictionary::of(entries.collect());
        let environment =
            dictionary.map_or(Value::NONE, |known| Value(Kind::Dictionary(known.into())));
        Self { environment }
    }
}

impl Object for OsModule {
    fn type_name(&self) -> String {
        "module".into()
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        match name {
            "environ" => Some(self.environment.clone()),
            "path" => Some(Value(Kind::Module("os.path"))),
            "sep" => Some("/".into()),
            "getenv" => {
                let get = super::value::Method {
                    receiver: self.environment.clone(),
                    name: "get",
                    depth: self.environment.depth() + 1,
                };
                Some(Value(Kind::Method(get.into())))
            }
            _ => None,
        }
    }

    fn attribute_names(&self) -> Vec<String> {
        ["environ", "getenv", "path", "sep"]
            .map(String::from)
            .into()
    }

    fn text(&self) -> Option<String> {
        Some("<module 'os'>".into())
    }
}

/// `os.path.NAME`
pub(super) fn path_attribute(name: &str) -> Option<Value> {
    let long = match name {
        "basename" => "os.path.basename",
        "dirname" => "os.path.dirname",
        "exists" => "os.path.exists",
        "isabs" => "os.path.isabs",
        "isdir" => "os.path.isdir",
        "isfile" => "os.path.isfile",
        "join" => "os.path.join",
        "normpath" => "os.path.normpath",
        "split" => "os.path.split",
        "splitext" => "os.path.splitext",
        _ => return None,
    };
    Some(Value(Kind::Function(long)))
}

/// Calls `os.path.NAME`.
pub(super) fn call(machine: &mut Machine, name: &str, arguments: &Arguments) -> Outcome<Value> {
    let texts: Result<Vec<&str>, String> = arguments
        .positional
        .iter()
        .map(|one| {
            one.as_text()
                .ok_or_else(|| format!("os.path.{name} needs texts, not {}", short(one)))
        })
        .collect();
    let texts = texts?;
    let Some((&first, rest)) = texts.split_first() else {
        return Err(format!("os.path.{name} needs a path").into());
    };
    if !rest.is_empty() && name != "join" {
        return Err(format!("os.path.{name} takes one path, not {}", texts.len()).into());
    }
    let (folder, file) = split(first);
    match name {
        "join" => {
            let mut path = first.to_owned();
            for part in rest {
                if part.starts_with('/') {
                    path.clear();
                } else if !path.is_empty() && !path.ends_with('/') {
                    path.push('/');
                }
                path.push_str(part);
                machine.check_text(path.len())?;
            }
            machine.text(path)
        }
        "basename" => machine.text(file),
        "dirname" => machine.text(folder),
        "split" => machine.tuple(vec![folder.into(), file.into()]),
        "splitext" => {
            let stem = file.trim_start_matches('.');
            let dot = stem.rfind('.').map(|dot| first.len() - stem.len() + dot);
            let (path, extension) = first.split_at(dot.unwrap_or(first.len()));
            machine.tuple(vec![path.into(), extension.into()])
        }
        "normpath" => machine.text(normalized(first)),
        "isabs" => Ok(first.starts_with('/').into()),
        "exists" => Ok(Path::new(first).exists().into()),
        "isfile" => Ok(Path::new(first).is_file().into()),
        _ => Ok(Path::new(first).is_dir().into()),
    }
}

fn split(path: &str) -> (&str, &str) {
    let start = path.rfind('/').map_or(0, |slash| slash + 1);
    let (folder, file) = path.split_at(start);
    let trimmed = folder.trim_end_matches('/');
    (if trimmed.is_empty() { folder } else { trimmed }, file)
}

fn normalized(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_absolute => {}
            _ => parts.push(part),
        }
    }
    match (is_absolute, parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".into(),
        (false, rest) => rest,
    }
}
