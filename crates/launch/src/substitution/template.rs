//! A text with substitutions, taken apart.
//!
//! ```text
//! template  = { text | "$(" name { " " argument } ")" }
//! argument  = bare | "'" template "'" | '"' template '"'
//! ```
//! Bare arguments end at a blank or a bracket. A backslash makes the next
//! character an ordinary one. As in ROS 2's `grammar.lark`, but for blanks, of
//! which there may be several.

/// How deep substitutions may lie in each other.
pub const DEPTH_MAX: usize = 32;

/// A text, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Its parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text as it is.
    Text(String),
    /// A substitution.
    Call(Call),
}

/// `$(name argument …)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments, which may have substitutions themselves.
    pub arguments: Vec<Template>,
}

impl Template {
    /// Takes a text apart.
    ///
    /// # Errors
    /// What is wrong and what to write, in one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            letters: text.chars().collect(),
            at: 0,
        };
        parser.template(&[], 0)
    }

    /// The text, where there is no substitution in it.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether there is a substitution in it.
    pub fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call(_)))
    }

    /// The words of a command line, as a shell would see them: blanks in the text
    /// part them, quotes hold them together; what a substitution gives is never
    /// parted.
    ///
    /// # Errors
    /// A quote that is never closed.
    pub fn words(&self) -> Result<Vec<Template>, String> {
        let mut words = Words::default();
        for part in &self.parts {
            match part {
                Part::Call(_) => words.add(part.clone()),
                Part::Text(text) => words.take(text)?,
            }
        }
        match words.quote {
            Some(quote) => Err(format!(
                "the quote {quote} is never closed; close it, or write \\{quote} for the character"
            )),
            None => {
                words.end_word();
                Ok(words.done)
            }
        }
    }

    fn push(&mut self, letter: char) {
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push(letter),
            _ => self.parts.push(Part::Text(letter.into())),
        }
    }
}

struct Parser {
    letters: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn is_call(&self) -> bool {
        self.letters.get(self.at..self.at + 2) == Some(&['$', '('])
    }

    /// Everything up to one of `ends`, or the end of the text.
    fn template(&mut self, ends: &[char], depth: usize) -> Result<Template, String> {
        let mut template = Template::default();
        while let Some(letter) = self.peek() {
            if ends.contains(&letter) {
                break;
            }
            if self.is_call() {
                let call = self.call(ends, depth)?;
                template.parts.push(Part::Call(call));
                continue;
            }
            self.at += 1;
            match (letter, self.peek()) {
                ('\\', Some(next)) => {
                    self.at += 1;
                    template.push(next);
                }
                _ => template.push(letter),
            }
        }
        Ok(template)
    }

    /// `$(name …)`; `ends` are the quotes that it stands in.
    fn call(&mut self, ends: &[char], depth: usize) -> Result<Call, String> {
        if depth >= DEPTH_MAX {
            return Err(format!(
                "substitutions lie more than {DEPTH_MAX} deep; take them apart with let"
            ));
        }
        self.at += 2;
        let name = self.name()?;
        let mut arguments = Vec::new();
        loop {
            let blanks = self.skip_blanks();
            match self.peek() {
                Some(')') => {
                    self.at += 1;
                    return Ok(Call { name, arguments });
                }
                Some(letter) if ends.contains(&letter) => return Err(unclosed(&name)),
                None => return Err(unclosed(&name)),
                Some(_) if !blanks => {
                    return Err(format!(
                        "in $({name} …) a blank is missing between arguments, or quotes around one"
                    ));
                }
                Some(quote @ ('"' | '\'')) => {
                    self.at += 1;
                    let ends_within: Vec<char> = ends.iter().copied().chain([quote]).collect();
                    let argument = self.template(&ends_within, depth + 1)?;
                    if self.peek() != Some(quote) {
                        return Err(format!(
                            "in $({name} …) the quote {quote} is never closed; close it, or write \\{quote} for the character"
                        ));
                    }
                    self.at += 1;
                    arguments.push(argument);
                }
                Some('(') => {
                    return Err(format!(
                        "in $({name} …) stands a bracket; put the argument into quotes, or write \\("
                    ));
                }
                Some(_) => arguments.push(self.bare(&name, ends, depth)?),
            }
        }
    }

    /// An argument without quotes.
    fn bare(&mut self, name: &str, ends: &[char], depth: usize) -> Result<Template, String> {
        let mut template = Template::default();
        while let Some(letter) = self.peek() {
            if self.is_call() {
                let call = self.call(ends, depth + 1)?;
                template.parts.push(Part::Call(call));
                continue;
            }
            if letter.is_whitespace() || letter == ')' || ends.contains(&letter) {
                break;
            }
            if letter == '(' {
                return Err(format!(
                    "in $({name} …) stands a bracket; put the argument into quotes, or write \\("
                ));
            }
            self.at += 1;
            match (letter, self.peek()) {
                ('\\', Some(next)) => {
                    self.at += 1;
                    template.push(next);
                }
                _ => template.push(letter),
            }
        }
        Ok(template)
    }

    fn name(&mut self) -> Result<String, String> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
        {
            self.at += 1;
        }
        let name: String = self.letters[start..self.at].iter().collect();
        match name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            true => Ok(name),
            false => {
                Err("after $( stands no name; write $(var name), or \\$( for the characters".into())
            }
        }
    }

    fn skip_blanks(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        self.at > start
    }
}

fn unclosed(name: &str) -> String {
    format!("$({name} is never closed; write $({name} …)")
}

/// A shell's rules for words, as Python's `shlex.split` has them.
#[derive(Default)]
struct Words {
    done: Vec<Template>,
    word: Template,
    is_open: bool,
    quote: Option<char>,
}

impl Words {
    fn add(&mut self, part: Part) {
        self.is_open = true;
        self.word.parts.push(part);
    }

    fn end_word(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.done.push(std::mem::take(&mut self.word));
        }
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match (self.quote, letter) {
                (None, '"' | '\'') => {
                    self.quote = Some(letter);
                    self.is_open = true;
                }
                (Some(quote), _) if letter == quote => self.quote = None,
                (None, _) if letter.is_whitespace() => self.end_word(),
                (None | Some('"'), '\\') => {
                    let next = letters.next().unwrap_or('\\');
                    self.is_open = true;
                    self.word.push(next);
                }
                _ => {
                    self.is_open = true;
                    self.word.push(letter);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    fn call(name: &str, arguments: impl IntoIterator<Item = Template>) -> Part {
        Part::Call(Call {
            name: name.into(),
            arguments: arguments.into_iter().collect(),
        })
    }

    fn of(parts: impl IntoIterator<Item = Part>) -> Template {
        Template {
            parts: parts.into_iter().collect(),
        }
    }

    #[test]
    fn texts_and_substitutions_follow_each_other_and_lie_in_each_other() {
        let template = Template::parse("a $(find-pkg-share $(var pkg))/b").unwrap();
        let inner = of([call("var", [of([text("pkg")])])]);
        assert_eq!(
            template,
            of([text("a "), call("find-pkg-share", [inner]), text("/b")])
        );
    }

    #[test]
    fn quotes_hold_an_argument_together_and_may_hold_substitutions() {
        let template = Template::parse(r#"$(eval "'$(var a)' == 'b c'")"#).unwrap();
        let argument = of([
            text("'"),
            call("var", [of([text("a")])]),
            text("' == 'b c'"),
        ]);
        assert_eq!(template, of([call("eval", [argument])]));
    }

    #[test]
    fn a_backslash_makes_any_character_ordinary() {
        let template = Template::parse(r"\$(var a) costs \\ $5").unwrap();
        assert_eq!(template, of([text(r"$(var a) costs \ $5")]));
    }

    #[test]
    fn what_is_wrong_is_said_with_a_way_out() {
        for (wrong, said) in [
            ("$(var a", "never closed"),
            ("$()", "no name"),
            ("$(1 a)", "no name"),
            ("$(eval 'a)", "quote ' is never closed"),
            ("$(eval (1))", "put the argument into quotes"),
            ("$(eval \"a\"b)", "a blank is missing"),
            ("$(env \"$(var a\")", "never closed"),
        ] {
            let error = Template::parse(wrong).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        }
        let deep = "$(not ".repeat(40) + "1" + &")".repeat(40);
        assert!(Template::parse(&deep).unwrap_err().contains("32 deep"));
    }

    #[test]
    fn a_command_line_is_parted_as_a_shell_parts_it_but_never_within_a_substitution() {
        let words = |text: &str| Template::parse(text).unwrap().words();
        let given = words("$(find-exec a)/b --x='1 2' c\"d e\"f  ''").unwrap();
        let expected = [
            of([call("find-exec", [of([text("a")])]), text("/b")]),
            of([text("--x=1 2")]),
            of([text("cd ef")]),
            of([]),
        ];
        assert_eq!(given, expected);
        assert_eq!(words("  ").unwrap(), []);
        assert!(words("a 'b").unwrap_err().contains("never closed"));
    }
}
