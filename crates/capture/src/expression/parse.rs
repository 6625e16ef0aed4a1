//! From words to an expression, by recursive descent. Where `and` follows `or`, tcpdump reads from left to right and others bind
//! `and` more closely: only parentheses say which is meant.

use std::fmt;
use std::net::IpAddr;

use rheostat_steer::Prefix;
use thiserror::Error;

use super::Expression;
use super::qualifiers::Qualifiers;
use super::token::{PlacedToken, Token, tokens};

/// Longer texts are refused.
const LONGEST: usize = 4_096;
/// Parentheses and negations within one another.
const DEEPEST: usize = 64;

/// The words that begin a term.
const WORDS: [&str; 19] = [
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmp6",
    "proto",
    "fragment",
    "vlan",
    "host",
    "net",
    "port",
    "portrange",
    "src",
    "dst",
    "less",
    "greater",
];

/// Why a text is no expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ExpressionError {
    /// What was read.
    pub text: String,
    /// The byte that the mistake begins at.
    pub at: usize,
    /// What is wrong there.
    pub mistake: Mistake,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mistake {
    /// Nothing stands there.
    #[error("the expression is empty; write, for example, `tcp and port 443`")]
    Empty,
    /// It is too long.
    #[error("an expression has {LONGEST} bytes at most")]
    TooLong,
    /// It is too deep.
    #[error("parentheses and `not` may be {DEEPEST} deep at most")]
    TooDeep,
    /// A term is missing.
    #[error("something is missing here: a term such as `tcp`, `host 10.0.0.1`, `port 53`")]
    MissingTerm,
    /// No word of the language.
    #[error("`{word}` is no term{hint}")]
    Unknown {
        /// The word.
        word: String,
        /// What may have been meant.
        hint: String,
    },
    /// Two terms side by side.
    #[error("`and` or `or` is missing before `{0}`")]
    MissingOperator(String),
    /// A parenthesis that is not closed.
    #[error("this parenthesis is not closed")]
    Unclosed,
    /// A parenthesis that was not opened.
    #[error("this parenthesis closes none")]
    Unopened,
    /// `and` behind `or` without parentheses.
    #[error(
        "`and` behind `or` is read in two ways: write `{from_left}`, as tcpdump reads it, or `{and_first}`"
    )]
    Mixed {
        /// With the operators from left to right.
        from_left: String,
        /// With `and` before `or`.
        and_first: String,
    },
    /// A word that does not go with the one before it.
    #[error("`{protocol}` does not go with `{word}`")]
    Qualifier {
        /// The first word.
        protocol: String,
        /// The second.
        word: String,
    },
    /// What must follow a word does not.
    #[error("`{after}` needs {needs} behind it{got}")]
    Argument {
        /// The word.
        after: String,
        /// What it needs.
        needs: &'static str,
        /// What stands there.
        got: String,
    },
}

impl fmt::Display for ExpressionError {
    /// The text with a mark below the place, and what is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text[..self.at].chars().count();
        // As many blanks as there are characters, whatever they are.
        let line: String =
            self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{}\n  {line}\n  {:column$}^ here", self.mistake, "")
    }
}

pub(super) fn parse(text: &str) -> Result<Expression, ExpressionError> {
    let wrong = |(at, mistake)| ExpressionError { text: text.to_owned(), at, mistake };
    if text.len() > LONGEST {
        return Err(ExpressionError { text: String::new(), at: 0, mistake: Mistake::TooLong });
    }
    let tokens = tokens(text);
    if tokens.is_empty() {
        return Err(wrong((0, Mistake::Empty)));
    }
    let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), depth: 0, last: None };
    let expression = parser.any().map_err(wrong)?;
    match parser.peek() {
        None => Ok(expression),
        Some(PlacedToken { token: Token::Close, at }) => Err(wrong((at, Mistake::Unopened))),
        Some(PlacedToken { token, at }) => {
            let word = if let Token::Word(word) = token { word } else { "(" };
            let word = if token == Token::Not { "not" } else { word };
            Err(wrong((at, Mistake::MissingOperator(word.to_owned()))))
        }
    }
}

pub(super) struct Parser<'t> {
    pub(super) tokens: &'t [PlacedToken<'t>],
    pub(super) next: usize,
    end: usize,
    depth: usize,
    /// The words before the last value.
    pub(super) last: Option<Qualifiers<'t>>,
}

pub(super) type Parsed<T> = Result<T, (usize, Mistake)>;

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<PlacedToken<'t>> {
        self.tokens.get(self.next).copied()
    }

    fn take(&mut self, token: Token<'_>) -> bool {
        let found = self.peek().is_some_and(|next| next.token == token);
        self.next += usize::from(found);
        found
    }

    /// Where the next token starts, or the text ends.
    pub(super) fn here(&self) -> usize {
        self.peek().map_or(self.end, |next| next.at)
    }

    fn any(&mut self) -> Parsed<Expression> {
        let mut parts = vec![joined(self.all()?.0, Expression::And)];
        while self.take(Token::Or) {
            let (mut all, and) = self.all()?;
            if let Some(at) = and {
                let and_first = [parts.clone(), vec![Expression::And(all.clone())]].concat();
                parts.push(all.remove(0));
                let from_left = [vec![Expression::Or(parts)], all].concat();
                let from_left = Expression::And(from_left).to_string();
                let and_first = Expression::Or(and_first).to_string();
                return Err((at, Mistake::Mixed { from_left, and_first }));
            }
            parts.append(&mut all);
        }
        Ok(joined(parts, Expression::Or))
    }

    /// The parts between which `and` stands, and where the first of these stands.
    fn all(&mut self) -> Parsed<(Vec<Expression>, Option<usize>)> {
        let (mut parts, mut and) = (vec![self.one()?], None);
        loop {
            let at = self.here();
            if !self.take(Token::And) {
                return Ok((parts, and));
            }
            and = and.or(Some(at));
            parts.push(self.one()?);
        }
    }

    fn one(&mut self) -> Parsed<Expression> {
        let at = self.here();
        let Some(PlacedToken { token, .. }) = self.peek() else {
            return Err((at, Mistake::MissingTerm));
        };
        self.next += 1;
        match token {
            Token::Not => {
                self.deeper(at)?;
                let inner = self.one()?;
                self.depth -= 1;
                Ok(Expression::Not(Box::new(inner)))
            }
            Token::Open => {
                self.deeper(at)?;
                let inner = self.any()?;
                self.depth -= 1;
                match self.peek() {
                    None => Err((at, Mistake::Unclosed)),
                    Some(_) if self.take(Token::Close) => Ok(inner),
                    Some(PlacedToken { token: Token::Word(word), at }) => {
                        Err((at, Mistake::MissingOperator(word.to_owned())))
                    }
                    Some(PlacedToken { at, .. }) => {
                        Err((at, Mistake::MissingOperator("(".to_owned())))
                    }
                }
            }
            Token::Word(word) => self.primitive(word, at),
            Token::And | Token::Or | Token::Close => Err((at, Mistake::MissingTerm)),
        }
    }

    fn deeper(&mut self, at: usize) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEEPEST { Err((at, Mistake::TooDeep)) } else { Ok(()) }
    }
}

/// The parts by an operator, or the only one.
fn joined(mut parts: Vec<Expression>, operator: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 { parts.remove(0) } else { operator(parts) }
}

/// What stands in the place of something else.
pub(super) fn written(token: Option<Token<'_>>) -> String {
    match token {
        Some(Token::Word(word)) => format!(", not `{word}`"),
        _ => String::new(),
    }
}

pub(super) fn unknown(word: &str) -> Mistake {
    let hint = if word.parse::<IpAddr>().is_ok() {
        format!(": did you mean `host {word}`?")
    } else if word.parse::<Prefix>().is_ok() {
        format!(": did you mean `net {word}`?")
    } else if word.parse::<u16>().is_ok() {
        format!(": did you mean `port {word}`?")
    } else {
        let lower = word.to_lowercase();
        let near = WORDS.iter().map(|known| (strsim::damerau_levenshtein(&lower, known), *known));
        match near.min().filter(|(distance, known)| *distance <= 1 || lower.starts_with(known)) {
            Some((_, known)) => format!(": did you mean `{known}`?"),
            None => format!("; the words are {}", WORDS.join(", ")),
        }
    };
    Mistake::Unknown { word: word.to_owned(), hint }
}
