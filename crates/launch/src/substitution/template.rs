//! Parser of texts with substitutions.
//!
//! ```text
//! template  = { text | "$(" name { " " argument } ")" }
//! argument  = bare | "'" template "'" | '"' template '"'
//! ```
//! Bare arguments end at a blank or a bracket. Within quotes, quotes of the other kind
//! are characters. A backslash escapes the next character. The grammar is that of ROS 2's
//! `grammar.lark`, except that several blanks are accepted.

/// Largest nesting depth of substitutions.
pub const DEPTH_MAX: usize = 32;

/// A parsed text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Its parts, in order.
    pub parts: Vec<TemplatePart>,
}

/// A part of a parsed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Literal text.
    Text(String),
    /// A substitution.
    Call(SubstitutionCall),
}

/// `$(name argument …)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubstitutionCall {
    /// As written, `find-pkg-share`.
    pub name: String,
    /// Its arguments, which may contain substitutions.
    pub arguments: Vec<Template>,
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// The problem, the correct form and the place, in one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            letters: text.chars().collect(),
            at: 0,
        };
        let parsed = parser.template(&[], 0);
        parsed.map_err(|message| format!("{message}; at {}", parser.place()))
    }

    /// The text, if it contains no substitution.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it contains a substitution.
    pub fn has_calls(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, TemplatePart::Call(_)))
    }

    /// Splits a command line into words as a shell does: blanks separate words and
    /// quotes join them. The result of a substitution is never split.
    ///
    /// # Errors
    /// A quote that is not closed.
    pub fn words(&self) -> Result<Vec<Template>, String> {
        let mut words = WordSplitter::default();
        for part in &self.parts {
            match part {
                TemplatePart::Call(_) => words.add(part.clone()),
                TemplatePart::Text(text) => words.take(text)?,
            }
        }
        match words.quote {
            Some(quote) => Err(format!(
                "the quote {quote} is not closed; close it, or write \\{quote} for the character"
            )),
            None => {
                words.end_word();
                Ok(words.done)
            }
        }
    }

    fn push(&mut self, letter: char) {
        match self.parts.last_mut() {
            Some(TemplatePart::Text(text)) => text.push(letter),
            _ => self.parts.push(TemplatePart::Text(letter.into())),
        }
    }
}

struct Parser {
    letters: Vec<char>,
    at: usize,
}

impl Parser {
    /// Line and column of the next character.
    fn place(&self) -> String {
        let before = self.letters.iter().take(self.at);
        let lines = before.clone().filter(|letter| **letter == '\n').count();
        let column = before.rev().take_while(|letter| **letter != '\n').count() + 1;
        match lines {
            0 => format!("column {column}"),
            _ => format!("line {}, column {column}", lines + 1),
        }
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    /// Whether a substitution begins here. As in ROS 2, a backslash in front of it
    /// makes it text, even if another backslash escapes that one.
    fn is_call(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.letters[at]);
        self.letters.get(self.at..self.at + 2) == Some(&['$', '(']) && before != Some('\\')
    }

    /// Takes the character of an escape; the backslash itself before a line end.
    fn take_letter(&mut self, letter: char) -> char {
        self.at += 1;
        match (letter, self.peek()) {
            ('\\', Some(next)) if next != '\n' => {
                self.at += 1;
                next
            }
            _ => letter,
        }
    }

    /// Parses up to one of `ends` or the end of the text.
    fn template(&mut self, ends: &[char], depth: usize) -> Result<Template, String> {
        let mut template = Template::default();
        while let Some(letter) = self.peek() {
            if ends.contains(&letter) {
                break;
            }
            if self.is_call() {
                let call = self.call(ends, depth)?;
                template.parts.push(TemplatePart::Call(call));
                continue;
            }
            template.push(self.take_letter(letter));
        }
        Ok(template)
    }

    /// Parses `$(name …)`; `ends` are the enclosing quotes.
    fn call(&mut self, ends: &[char], depth: usize) -> Result<SubstitutionCall, String> {
        if depth >= DEPTH_MAX {
            return Err(format!(
                "substitutions are nested more than {DEPTH_MAX} deep; split them with let"
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
                    return Ok(SubstitutionCall { name, arguments });
                }
                Some(letter) if ends.contains(&letter) => return Err(unclosed(&name)),
                None => return Err(unclosed(&name)),
                Some(_) if !blanks => {
                    return Err(format!(
                        "in $({name} …) a blank is missing between arguments, or quotes around one"
                    ));
                }
                Some(quote @ ('"' | '\'')) if ends.is_empty() => {
                    self.at += 1;
                    let argument = self.template(&[quote], depth + 1)?;
                    if self.peek() != Some(quote) {
                        return Err(format!(
                            "in $({name} …) the quote {quote} is not closed; close it, or write \\{quote} for the character"
                        ));
                    }
                    self.at += 1;
                    arguments.push(argument);
                }
                Some('(') => {
                    return Err(format!(
                        "in $({name} …) there is a bracket; put the argument into quotes, or write \\("
                    ));
                }
                Some(_) => arguments.push(self.bare(&name, ends, depth)?),
            }
        }
    }

    /// Parses an argument without quotes.
    fn bare(&mut self, name: &str, ends: &[char], depth: usize) -> Result<Template, String> {
        let mut template = Template::default();
        while let Some(letter) = self.peek() {
            if self.is_call() {
                let call = self.call(ends, depth + 1)?;
                template.parts.push(TemplatePart::Call(call));
                continue;
            }
            if matches!(letter, ' ' | '\n' | ')') || ends.contains(&letter) {
                break;
            }
            if letter == '(' {
                return Err(format!(
                    "in $({name} …) there is a bracket; put the argument into quotes, or write \\("
                ));
            }
            template.push(self.take_letter(letter));
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
        if name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            Ok(name)
        } else {
            Err("a name is missing after $(; write $(var name), or \\$( for the characters".into())
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
    format!("$({name} is not closed; write $({name} …)")
}

/// Splits words by the rules of a shell, as Python's `shlex.split` does.
#[derive(Default)]
struct WordSplitter {
    done: Vec<Template>,
    word: Template,
    is_open: bool,
    quote: Option<char>,
}

impl WordSplitter {
    fn add(&mut self, part: TemplatePart) {
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
                (None, ' ' | '\t' | '\r' | '\n') => self.end_word(),
                (None | Some('"'), '\\') => {
                    self.is_open = true;
                    let next = letters.next().ok_or(
                        "a backslash at the end escapes nothing; write \\\\\\\\ for the character",
                    )?;
                    // Within double quotes, it escapes only a quote and itself.
                    if self.quote.is_some() && !matches!(next, '"' | '\\') {
                        self.word.push('\\');
                    }
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

    fn text(text: &str) -> TemplatePart {
        TemplatePart::Text(text.into())
    }

    fn call(name: &str, arguments: impl IntoIterator<Item = Template>) -> TemplatePart {
        TemplatePart::Call(SubstitutionCall {
            name: name.into(),
            arguments: arguments.into_iter().collect(),
        })
    }

    fn of(parts: impl IntoIterator<Item = TemplatePart>) -> Template {
        Template {
            parts: parts.into_iter().collect(),
        }
    }

    #[test]
    fn texts_and_substitutions_follow_each_other_and_nest() {
        let template = Template::parse("a $(find-pkg-share $(var pkg))/b").unwrap();
        let inner = of([call("var", [of([text("pkg")])])]);
        assert_eq!(
            template,
            of([text("a "), call("find-pkg-share", [inner]), text("/b")])
        );
    }

    #[test]
    fn quotes_join_an_argument_and_may_contain_substitutions() {
        let template = Template::parse(r#"$(eval "'$(var a)' == 'b c'")"#).unwrap();
        let argument = of([
            text("'"),
            call("var", [of([text("a")])]),
            text("' == 'b c'"),
        ]);
        assert_eq!(template, of([call("eval", [argument])]));
        // As in ROS 2, the inner quotes are characters.
        let template = Template::parse(r#"$(env "a_$(var 'x')" '$(env D)_b')"#).unwrap();
        let name = of([text("a_"), call("var", [of([text("'x'")])])]);
        let default = of([call("env", [of([text("D")])]), text("_b")]);
        assert_eq!(template, of([call("env", [name, default])]));
    }

    #[test]
    fn a_backslash_escapes_any_character() {
        let template = Template::parse(r"\$(var a) costs \\ $5").unwrap();
        assert_eq!(template, of([text(r"$(var a) costs \ $5")]));
    }

    #[test]
    fn errors_name_the_problem_and_the_correct_form() {
        for (wrong, message) in [
            ("$(var a", "not closed"),
            ("$()", "a name is missing"),
            ("$(1 a)", "a name is missing"),
            ("$(eval 'a)", "quote ' is not closed"),
            ("$(eval (1))", "put the argument into quotes"),
            ("$(eval \"a\"b)", "a blank is missing"),
            ("$(env \"$(var a\")", "not closed"),
        ] {
            let error = Template::parse(wrong).unwrap_err();
            assert!(error.contains(message), "{wrong}: {error}");
        }
        let deep = "$(not ".repeat(40) + "1" + &")".repeat(40);
        assert!(Template::parse(&deep).unwrap_err().contains("32 deep"));
    }

    /// Texts and words as ROS 2 Jazzy's `parse_substitution` and `_parse_cmdline`
    /// return them.
    #[test]
    fn escapes_and_quotes_are_those_of_ros2() {
        for (written, whole, split) in [
            (r#""a\\nb""#, r#""a\nb""#, &[r"a\nb"][..]),
            (r#""a\nb""#, r#""anb""#, &["anb"]),
            (r"'a\\nb'", r"'a\nb'", &[r"a\nb"]),
            (r"a\\nb", r"a\nb", &["anb"]),
            (r"a\\\\nb", r"a\\nb", &[r"a\nb"]),
            (r#""a\\\\b""#, r#""a\\b""#, &[r"a\b"]),
            (r#""a\\"b""#, r#""a\"b""#, &[r#"a"b"#]),
            (r#"\"a b\""#, r#""a b""#, &["a b"]),
            (r#"\\"a b\\""#, r#"\"a b\""#, &[r#""a"#, r#"b""#]),
            ("a\\\nb", "a\\\nb", &["a\nb"]),
            ("\"a\\\nb\"", "\"a\\\nb\"", &["a\\\nb"]),
            (r"\$(var x)", "$(var x)", &["$(var", "x)"]),
            (r"\\$(var x)", r"\$(var x)", &["$(var", "x)"]),
            (r"\\\$(var x)", r"\$(var x)", &["$(var", "x)"]),
            ("a$b $c", "a$b $c", &["a$b", "$c"]),
            (r#""a\$b""#, r#""a$b""#, &["a$b"]),
            ("a\tb\nc", "a\tb\nc", &["a", "b", "c"]),
            ("''  b", "''  b", &["", "b"]),
            ("a\r\nb", "a\r\nb", &["a", "b"]),
            (
                "a\u{a0}b\u{2003}c\u{b}d\u{c}e",
                "a\u{a0}b\u{2003}c\u{b}d\u{c}e",
                &["a\u{a0}b\u{2003}c\u{b}d\u{c}e"],
            ),
        ] {
            let template = Template::parse(written).unwrap();
            assert_eq!(template.as_text(), Some(whole), "{written}");
            let words = template.words().unwrap();
            let words: Vec<_> = words.iter().filter_map(Template::as_text).collect();
            assert_eq!(words, split, "{written}");
        }
        let end = Template::parse("a\\").unwrap().words().unwrap_err();
        assert!(end.contains("a backslash at the end"), "{end}");
        for (written, argument) in [
            (r#"$(var "a\\nb")"#, r"a\nb"),
            (r#"$(var "a\nb")"#, "anb"),
            (r"$(var 'a\'b')", "a'b"),
            (r"$(var a\)b)", "a)b"),
            ("$(var a\tb)", "a\tb"),
            (r#"$(var "\$(var x)")"#, "$(var x)"),
            (r#"$(var "\\\$(var x)")"#, r"\$(var x)"),
        ] {
            let expected = of([call("var", [of([text(argument)])])]);
            assert_eq!(Template::parse(written).unwrap(), expected, "{written}");
        }
    }

    #[test]
    fn a_command_line_is_split_as_by_a_shell_but_never_within_a_substitution() {
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
        assert!(words("a 'b").unwrap_err().contains("not closed"));
    }
}
