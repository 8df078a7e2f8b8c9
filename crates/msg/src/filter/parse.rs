//! Parser of the content filter: tokens to a tree. `OR` binds least, then `AND`,
//! then `NOT`. Chains of one operator are lists, so only parentheses and `NOT`s add
//! depth.

use super::lex::{
    Keyword, Lexer, Literal, NamedStep, PositionedToken, Relation, SyntaxError, Token,
    in_expression, quoted,
};
use super::{
    EXPRESSION_BYTES_MAX, FilterError, FilterErrorLocation, PARAMETERS_MAX, TEXT_BYTES_MAX,
};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A term and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub at: usize,
    pub what: TermKind,
}

#[derive(Clone, Debug)]
pub(super) enum TermKind {
    Field(Vec<NamedStep>),
    Literal(Literal),
    Parameter(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Compare {
        left: Term,
        relation: Relation,
        /// Position of the relation.
        at: usize,
        right: Term,
    },
    Between {
        field: Term,
        negated: bool,
        low: Term,
        high: Term,
    },
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// Reads a whole expression.
pub(super) fn parse(text: &str, nesting_max: usize) -> Result<Expression, FilterError> {
    let mistake = in_expression(text);
    if text.len() > EXPRESSION_BYTES_MAX {
        let message = format!(
            "the expression has {} bytes, at most {EXPRESSION_BYTES_MAX} are taken",
            text.len()
        );
        return Err(mistake(SyntaxError::new(0, message)));
    }
    let mut lexer = Lexer::new(text);
    let next = lexer.next().map_err(&mistake)?;
    let mut parser = Parser {
        text,
        lexer,
        next,
        nesting_max,
    };
    let whole = parser.any(0).map_err(&mistake)?;
    match parser.next.token {
        Token::End => Ok(whole),
        Token::Close => Err(mistake(SyntaxError::new(
            parser.next.at,
            "this ) closes nothing; remove it or open a parenthesis before",
        ))),
        _ => Err(mistake(parser.expected("AND, OR or the end"))),
    }
}

/// Reads the values of parameters.
pub(super) fn parameters(texts: &[String]) -> Result<Vec<Literal>, FilterError> {
    if texts.len() > PARAMETERS_MAX {
        let message = format!(
            "{} parameters are given, at most {PARAMETERS_MAX} can be named",
            texts.len()
        );
        let place = FilterErrorLocation::Parameter(PARAMETERS_MAX);
        return Err(FilterError::at(place, "", 0, message));
    }
    let read = |(number, text): (usize, &String)| {
        parameter(text).map_err(|error| {
            let location = FilterErrorLocation::Parameter(number);
            FilterError::at(location, text, error.at, error.message)
        })
    };
    texts.iter().enumerate().map(read).collect()
}

fn parameter(text: &str) -> Result<Literal, SyntaxError> {
    // Room for the quotes, and for some blanks.
    if text.len() > TEXT_BYTES_MAX + 8 {
        let message = format!(
            "the value has {} bytes, at most {TEXT_BYTES_MAX} are taken",
            text.len()
        );
        return Err(SyntaxError::new(0, message));
    }
    let mut lexer = Lexer::new(text);
    let value = lexer.next()?;
    let rest = lexer.next()?;
    match (value.token, rest.token) {
        (Token::Literal(literal), Token::End) => Ok(literal),
        (Token::Literal(_), _) => Err(SyntaxError::new(
            rest.at,
            "expected nothing behind the value",
        )),
        _ => Err(SyntaxError::new(
            value.at,
            "expected one number, TRUE, FALSE or a string in quotes: 'text'",
        )),
    }
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: PositionedToken,
    nesting_max: usize,
}

impl Parser<'_> {
    /// Takes the next token.
    fn take(&mut self) -> Result<PositionedToken, SyntaxError> {
        let next = self.lexer.next()?;
        Ok(core::mem::replace(&mut self.next, next))
    }

    fn take_if(&mut self, token: &Token) -> Result<bool, SyntaxError> {
        let found = self.next.token == *token;
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn take_keyword(&mut self, keyword: Keyword) -> Result<bool, SyntaxError> {
        self.take_if(&Token::Keyword(keyword))
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let found = quoted(self.text, &self.next);
        SyntaxError::new(self.next.at, format!("expected {what}, found {found}"))
    }

    fn any(&mut self, depth: usize) -> Result<Expression, SyntaxError> {
        let first = self.all(depth)?;
        if self.next.token != Token::Keyword(Keyword::Or) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take_keyword(Keyword::Or)? {
            parts.push(self.all(depth)?);
        }
        Ok(Expression::Any(parts))
    }

    fn all(&mut self, depth: usize) -> Result<Expression, SyntaxError> {
        let first = self.one(depth)?;
        if self.next.token != Token::Keyword(Keyword::And) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take_keyword(Keyword::And)? {
            parts.push(self.one(depth)?);
        }
        Ok(Expression::All(parts))
    }

    fn one(&mut self, depth: usize) -> Result<Expression, SyntaxError> {
        let deeper = || {
            if depth < self.nesting_max {
                Ok(depth.saturating_add(1))
            } else {
                let message = format!(
                    "parentheses and NOTs are nested deeper than {}",
                    self.nesting_max
                );
                Err(SyntaxError::new(self.next.at, message))
            }
        };
        match self.next.token {
            Token::Keyword(Keyword::Not) => {
                let depth = deeper()?;
                self.take()?;
                Ok(Expression::Not(Box::new(self.one(depth)?)))
            }
            Token::Open => {
                let depth = deeper()?;
                self.take()?;
                let inner = self.any(depth)?;
                if self.take_if(&Token::Close)? {
                    Ok(inner)
                } else {
                    Err(self.expected("AND, OR or )"))
                }
            }
            _ => self.predicate(),
        }
    }

    fn predicate(&mut self) -> Result<Expression, SyntaxError> {
        let left = self.term("a field, a value, NOT or (")?;
        let is_field = matches!(left.what, TermKind::Field(_));
        let at = self.next.at;
        match self.next.token {
            Token::Relation(relation) => {
                self.take()?;
                let right = self.term("a field or a value")?;
                Ok(Expression::Compare {
                    left,
                    relation,
                    at,
                    right,
                })
            }
            Token::Keyword(Keyword::Between) if is_field => self.between(left, false),
            Token::Keyword(Keyword::Not) if is_field => {
                self.take()?;
                match self.next.token {
                    Token::Keyword(Keyword::Between) => self.between(left, true),
                    _ => Err(self.expected("BETWEEN (other negations begin with NOT: NOT a = 1)")),
                }
            }
            _ if is_field => Err(self.expected("=, <>, <, <=, >, >=, LIKE or BETWEEN")),
            _ => Err(self.expected("=, <>, <, <=, > or >=")),
        }
    }

    fn between(&mut self, field: Term, negated: bool) -> Result<Expression, SyntaxError> {
        self.take()?;
        let low = self.term("the lower bound")?;
        if !self.take_keyword(Keyword::And)? {
            return Err(self.expected("AND and the upper bound"));
        }
        let high = self.term("the upper bound")?;
        for bound in [&low, &high] {
            if matches!(bound.what, TermKind::Field(_)) {
                let message = "a bound of BETWEEN is a value or a parameter, not a field";
                return Err(SyntaxError::new(bound.at, message));
            }
        }
        Ok(Expression::Between {
            field,
            negated,
            low,
            high,
        })
    }

    fn term(&mut self, expected: &str) -> Result<Term, SyntaxError> {
        let at = self.next.at;
        let what = match &self.next.token {
            Token::Field(steps) => TermKind::Field(steps.clone()),
            Token::Literal(literal) => TermKind::Literal(literal.clone()),
            Token::Parameter(number) => TermKind::Parameter(*number),
            _ => return Err(self.expected(expected)),
        };
        self.take()?;
        Ok(Term { at, what })
    }
}
