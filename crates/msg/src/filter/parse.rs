//! Tokens to a tree. `OR` binds least, then `AND`, then `NOT`; chains of one
//! operator are lists, so depth is what parentheses and `NOT`s make of it.

use super::lex::{
    Keyword, Lexer, Literal, Mistake, Placed, Relation, Step, Token, in_expression, quoted,
};
use super::{EXPRESSION_BYTES_MAX, FilterError, FilterPlace, PARAMETERS_MAX, TEXT_BYTES_MAX};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A term and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub at: usize,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Field(Vec<Step>),
    Literal(Literal),
    Parameter(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Compare {
        left: Term,
        relation: Relation,
        /// Where the relation stands.
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
        return Err(mistake((0, message)));
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
        Token::Close => Err(mistake((
            parser.next.at,
            "this ) closes nothing; remove it or open a parenthesis before".into(),
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
        let place = FilterPlace::Parameter(PARAMETERS_MAX);
        return Err(FilterError::at(place, "", 0, message));
    }
    let read = |(number, text): (usize, &String)| {
        parameter(text).map_err(|(at, message)| {
            FilterError::at(FilterPlace::Parameter(number), text, at, message)
        })
    };
    texts.iter().enumerate().map(read).collect()
}

fn parameter(text: &str) -> Result<Literal, Mistake> {
    // Room for the quotes, and for some blanks.
    if text.len() > TEXT_BYTES_MAX + 8 {
        let message = format!(
            "the value has {} bytes, at most {TEXT_BYTES_MAX} are taken",
            text.len()
        );
        return Err((0, message));
    }
    let mut lexer = Lexer::new(text);
    let value = lexer.next()?;
    let rest = lexer.next()?;
    match (value.token, rest.token) {
        (Token::Literal(literal), Token::End) => Ok(literal),
        (Token::Literal(_), _) => Err((rest.at, "expected nothing behind the value".into())),
        _ => Err((
            value.at,
            "expected one number, TRUE, FALSE or a string in quotes: 'text'".into(),
        )),
    }
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Placed,
    nesting_max: usize,
}

impl Parser<'_> {
    /// Takes the next token.
    fn take(&mut self) -> Result<Placed, Mistake> {
        let next = self.lexer.next()?;
        Ok(core::mem::replace(&mut self.next, next))
    }

    fn take_if(&mut self, token: &Token) -> Result<bool, Mistake> {
        let found = self.next.token == *token;
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn take_keyword(&mut self, keyword: Keyword) -> Result<bool, Mistake> {
        self.take_if(&Token::Keyword(keyword))
    }

    fn expected(&self, what: &str) -> Mistake {
        let found = quoted(self.text, &self.next);
        (self.next.at, format!("expected {what}, found {found}"))
    }

    fn any(&mut self, depth: usize) -> Result<Expression, Mistake> {
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

    fn all(&mut self, depth: usize) -> Result<Expression, Mistake> {
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

    fn one(&mut self, depth: usize) -> Result<Expression, Mistake> {
        let deeper = || match depth < self.nesting_max {
            true => Ok(depth.saturating_add(1)),
            false => {
                let message = format!(
                    "parentheses and NOTs are nested deeper than {}",
                    self.nesting_max
                );
                Err((self.next.at, message))
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
                match self.take_if(&Token::Close)? {
                    true => Ok(inner),
                    false => Err(self.expected("AND, OR or )")),
                }
            }
            _ => self.predicate(),
        }
    }

    fn predicate(&mut self) -> Result<Expression, Mistake> {
        let left = self.term("a field, a value, NOT or (")?;
        let is_field = matches!(left.what, What::Field(_));
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

    fn between(&mut self, field: Term, negated: bool) -> Result<Expression, Mistake> {
        self.take()?;
        let low = self.term("the lower bound")?;
        if !self.take_keyword(Keyword::And)? {
            return Err(self.expected("AND and the upper bound"));
        }
        let high = self.term("the upper bound")?;
        for bound in [&low, &high] {
            if matches!(bound.what, What::Field(_)) {
                let message = "a bound of BETWEEN is a value or a parameter, not a field";
                return Err((bound.at, message.into()));
            }
        }
        Ok(Expression::Between {
            field,
            negated,
            low,
            high,
        })
    }

    fn term(&mut self, expected: &str) -> Result<Term, Mistake> {
        let at = self.next.at;
        let what = match &self.next.token {
            Token::Field(steps) => What::Field(steps.clone()),
            Token::Literal(literal) => What::Literal(literal.clone()),
            Token::Parameter(number) => What::Parameter(*number),
            _ => return Err(self.expected(expected)),
        };
        self.take()?;
        Ok(Term { at, what })
    }
}
