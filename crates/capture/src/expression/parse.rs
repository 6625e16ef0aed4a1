//! From words to an expression, by recursive descent; `and` binds more closely than `or`.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use rheostat_packet::Network;
use rheostat_packet::wire::protocol::{SCTP, TCP, UDP};
use rheostat_steer::Prefix;
use thiserror::Error;

use super::token::{PlacedToken, Token, tokens};
use super::{Expression, Term, Way};

/// Longer texts are refused.
const LONGEST: usize = 4_096;
/// Parentheses and negations within one another.
const DEEPEST: usize = 64;

/// The words that begin a term.
const WORDS: [&str; 16] = [
    "ip", "ip6", "arp", "tcp", "udp", "sctp", "icmp", "icmp6", "proto", "fragment", "vlan", "host",
    "net", "port", "src", "dst",
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
    let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), depth: 0 };
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

struct Parser<'t> {
    tokens: &'t [PlacedToken<'t>],
    next: usize,
    end: usize,
    depth: usize,
}

type Parsed<T> = Result<T, (usize, Mistake)>;

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
    fn here(&self) -> usize {
        self.peek().map_or(self.end, |next| next.at)
    }

    fn any(&mut self) -> Parsed<Expression> {
        let mut parts = vec![self.all()?];
        while self.take(Token::Or) {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Or(parts) })
    }

    fn all(&mut self) -> Parsed<Expression> {
        let mut parts = vec![self.one()?];
        while self.take(Token::And) {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) })
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
            Token::Word(word) => self.term(word, at).map(Expression::Term),
            Token::And | Token::Or | Token::Close => Err((at, Mistake::MissingTerm)),
        }
    }

    fn deeper(&mut self, at: usize) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEEPEST { Err((at, Mistake::TooDeep)) } else { Ok(()) }
    }

    fn term(&mut self, word: &'t str, at: usize) -> Parsed<Term> {
        Ok(match word {
            "ip" => Term::Network(Network::Ipv4),
            "ip6" => Term::Network(Network::Ipv6),
            "arp" => Term::Network(Network::Arp),
            "tcp" => Term::Protocol(TCP),
            "udp" => Term::Protocol(UDP),
            "sctp" => Term::Protocol(SCTP),
            "icmp" => Term::Icmp(Network::Ipv4),
            "icmp6" => Term::Icmp(Network::Ipv6),
            "fragment" => Term::Fragment,
            "proto" => {
                Term::Protocol(self.argument(word, "a protocol number, 0 to 255", number)?)
            }
            "vlan" => {
                let id = self.peek().and_then(|next| match next.token {
                    Token::Word(word) => word.parse::<u16>().ok(),
                    _ => None,
                });
                if let Some(id) = id.filter(|id| *id >= 4_096) {
                    let (after, needs) = (word.to_owned(), "a number below 4096");
                    let got = format!(", not `{id}`");
                    return Err((self.here(), Mistake::Argument { after, needs, got }));
                }
                self.next += usize::from(id.is_some());
                Term::Vlan(id)
            }
            "src" | "dst" => {
                let way = if word == "src" { Way::Source } else { Way::Destination };
                let at = self.here();
                match self.peek().map(|next| next.token) {
                    Some(Token::Word(kind @ ("host" | "net" | "port"))) => {
                        self.next += 1;
                        self.end_of(way, kind)?
                    }
                    found => {
                        let needs = "`host`, `net` or `port`";
                        let got = written(found);
                        return Err((at, Mistake::Argument { after: word.to_owned(), needs, got }));
                    }
                }
            }
            "host" | "net" | "port" => self.end_of(Way::Either, word)?,
            _ => return Err((at, unknown(word))),
        })
    }

    fn end_of(&mut self, way: Way, kind: &str) -> Parsed<Term> {
        Ok(match kind {
            "host" => Term::Host(way, self.argument(kind, "an address such as 10.0.0.1", number)?),
            "net" => Term::Net(way, self.argument(kind, "a prefix such as 10.0.0.0/8", prefix)?),
            _ => {
                let needs = "a port, or two as in 1024-2047";
                Term::Port(way, self.argument(kind, needs, ports)?)
            }
        })
    }

    fn argument<T>(
        &mut self,
        after: &str,
        needs: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Parsed<T> {
        let at = self.here();
        let found = self.peek().map(|next| next.token);
        if let Some(Token::Word(word)) = found
            && let Some(value) = read(word)
        {
            self.next += 1;
            return Ok(value);
        }
        Err((at, Mistake::Argument { after: after.to_owned(), needs, got: written(found) }))
    }
}

/// What stands in the place of something else.
fn written(token: Option<Token<'_>>) -> String {
    match token {
        Some(Token::Word(word)) => format!(", not `{word}`"),
        _ => String::new(),
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.parse().ok()
}

fn prefix(word: &str) -> Option<Prefix> {
    word.parse().ok()
}

fn ports(word: &str) -> Option<RangeInclusive<u16>> {
    match word.split_once('-') {
        None => word.parse().ok().map(|port| port..=port),
        Some((first, last)) => {
            let ports = first.parse().ok()?..=last.parse().ok()?;
            (!ports.is_empty()).then_some(ports)
        }
    }
}

fn unknown(word: &str) -> Mistake {
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
