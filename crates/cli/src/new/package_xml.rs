//! `package.xml` of a new package: what colcon, rosdep and `pteros pkg xml` read.

use anyhow::{Result, bail};
use std::process::Command;

/// The facts of a package's manifest.
pub struct PackageXml {
    /// Version of the format, 2 or 3.
    pub format: u8,
    /// One sentence about the package.
    pub description: String,
    /// An SPDX name.
    pub license: String,
    /// Name of the maintainer; `None` for that of the environment.
    pub maintainer: Option<String>,
    /// E-mail address; `None` for that of git.
    pub email: Option<String>,
    /// Packages that it depends on.
    pub dependencies: Vec<String>,
}

impl Default for PackageXml {
    fn default() -> Self {
        Self {
            format: 3,
            description: DESCRIPTION.into(),
            license: LICENSE.into(),
            maintainer: None,
            email: None,
            dependencies: Vec::new(),
        }
    }
}

/// The description of a package whose author gives none.
pub const DESCRIPTION: &str = "A package for Pteros";
/// The license of a package whose author gives none.
pub const LICENSE: &str = "Apache-2.0";

impl PackageXml {
    /// # Errors
    /// A text has a character that XML cannot hold.
    pub fn check(&self) -> Result<()> {
        let texts = [
            ("description", Some(&self.description)),
            ("license", Some(&self.license)),
            ("maintainer-name", self.maintainer.as_ref()),
            ("maintainer-email", self.email.as_ref()),
        ];
        for (option, text) in texts {
            let mut letters = text.map_or("", String::as_str).chars();
            let is_wrong = |letter: &char| {
                (letter.is_control() && !"\t\n\r".contains(*letter))
                    || matches!(letter, '\u{fffe}' | '\u{ffff}')
            };
            if let Some(wrong) = letters.find(is_wrong) {
                bail!(
                    "--{option}: package.xml cannot hold the character U+{:04X}; leave it out",
                    u32::from(wrong)
                );
            }
        }
        Ok(())
    }

    /// The text of the file. The template uses the packages `used`. Runs git for its
    /// address.
    pub fn text(&self, name: &str, build_type: &str, used: &[&str]) -> String {
        let maintainer = self.maintainer.clone();
        let maintainer = maintainer.or_else(|| std::env::var("USER").ok());
        let maintainer = maintainer.unwrap_or_else(|| "user".into());
        let email = self.email.clone().or_else(git_email);
        let email = email.unwrap_or_else(|| format!("{maintainer}@todo.todo"));
        let mut depends: Vec<&str> = used.to_vec();
        let given = self.dependencies.iter().map(String::as_str);
        depends.extend(given.filter(|name| !used.contains(name)));
        let depends = depends.into_iter();
        let depends = depends.map(|name| format!("  <depend>{}</depend>\n", escaped(name)));
        include_str!("template/package.xml.txt")
            .replace("@FORMAT@", &self.format.to_string())
            .replace("@BUILD_TYPE@", build_type)
            .replace("@DEPENDS@\n", &depends.collect::<String>())
            .replace("@EMAIL@", &escaped(&email))
            .replace("@MAINTAINER@", &escaped(&maintainer))
            .replace("@LICENSE@", &escaped(&self.license))
            .replace("@NAME@", name)
            .replace("@DESCRIPTION@", &escaped(&self.description))
    }
}

/// The address of git's configuration, if git is there and has one.
fn git_email() -> Option<String> {
    let output = Command::new("git").args(["config", "user.email"]).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|email| !email.is_empty())
}

/// The text within XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_xml_cannot_hold_are_refused() {
        let check = |description: &str| {
            let description = description.into();
            PackageXml {
                description,
                ..PackageXml::default()
            }
            .check()
        };
        for wrong in ["\u{1b}[31mred", "a\u{b}", "\u{ffff}"] {
            let error = check(wrong).unwrap_err().to_string();
            assert!(error.starts_with("--description: "), "{error}");
        }
        check("two lines\n\tand \u{2764}\u{fe0f}").unwrap();
    }
}
