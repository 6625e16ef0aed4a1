//! One primitive of an expression, as pcap-filter(7) has them: a value behind its qualifiers (`tcp src port 443`), a value alone
//! that has the qualifiers of the one before it (`host 10.0.0.1 or 10.0.0.2`), or a word that needs no value.

use std::net::IpAddr;
use std::str::FromStr;

use super::parse::{Mistake, Parsed, Parser, unknown, written};
use super::qualifiers::{Kind, Qualifiers, Value, kind, prefix, protocol, qualifies, with_mask};
use super::token::Token;
use super::{Expression, Term, Way};

impl<'t> Parser<'t> {
    /// The primitive that starts with `word`, which stands at `at` and has been taken.
    pub(super) fn primitive(&mut self, word: &'t str, at: usize) -> Parsed<Expression> {
        let term = match word {
            "fragment" => Term::Fragment,
            "vlan" => self.vlan()?,
            "less" => Term::AtMost(self.argument(word, "a number of bytes", number)?),
            "greater" => Term::AtLeast(self.argument(word, "a number of bytes", number)?),
            _ => {
                if let Some(protocol) = protocol(word) {
                    let Some(next) = self.word().filter(|next| qualifies(next)) else {
                        self.last = None;
                        return Ok(Expression::Term(protocol));
                    };
                    let at = self.here();
                    self.next += 1;
                    return self.qualified(Some(word), next, at);
                }
                if qualifies(word) {
                    return self.qualified(None, word, at);
                }
                return self.value_alone(word, at);
            }
        };
        Ok(Expression::Term(term))
    }

    /// `first` is the word behind the protocol, if there is one: ends or a kind.
    fn qualified(
        &mut self,
        protocol: Option<&'t str>,
        first: &'t str,
        at: usize,
    ) -> Parsed<Expression> {
        let (ends, kind_word) = match first {
            "src" | "dst" => {
                let ends = self.ends(first);
                let kind = self.word().filter(|word| kind(word).is_some());
                self.next += usize::from(kind.is_some());
                (ends, kind)
            }
            _ => (&[Way::Either][..], Some(first)),
        };
        // A value behind `src` alone shows by itself whether it is an address or a prefix.
        let kind = match kind_word {
            Some(word) => kind(word).expect("only words of kinds come here"),
            None => match self.word() {
                Some(word) if word.parse::<IpAddr>().is_ok() => Kind::Host,
                Some(word) if prefix(word).is_some() => Kind::Net,
                other => {
                    let needs = "an address, a prefix, `host`, `net` or `port`";
                    let got = written(other.map(Token::Word));
                    let after = first.to_owned();
                    return Err((self.here(), Mistake::Argument { after, needs, got }));
                }
            },
        };
        let kind_word = kind_word.unwrap_or(first);
        let has_kind = match protocol {
            None | Some("ip" | "ip6") => true,
            Some("tcp" | "udp" | "sctp") => kind != Kind::Protocol,
            Some(_) => matches!(kind, Kind::Host | Kind::Net),
        };
        if let Some(protocol) = protocol.filter(|_| !has_kind) {
            let (protocol, word) = (protocol.to_owned(), kind_word.to_owned());
            return Err((at, Mistake::Qualifier { protocol, word }));
        }
        if kind == Kind::Protocol && ends != [Way::Either] {
            let (protocol, word) = (first.to_owned(), kind_word.to_owned());
            return Err((at, Mistake::Qualifier { protocol, word }));
        }
        let qualifiers = Qualifiers { protocol, ends, kind };
        let mut value =
            self.argument(kind_word, kind.needs(kind_word), |word| kind.read(kind_word, word))?;
        if let Value::Net(net) = value
            && self.word() == Some("mask")
        {
            self.next += 1;
            let needs = "a mask such as 255.255.0.0 that leaves no bit of the address";
            let masked = self.argument("mask", needs, |word| with_mask(net, word))?;
            value = Value::Net(masked);
        }
        self.last = Some(qualifiers);
        Ok(qualifiers.with(&value))
    }

    /// Takes `or dst` or `and dst` behind `src`, and the reverse.
    fn ends(&mut self, first: &str) -> &'static [Way] {
        let other = if first == "src" { "dst" } else { "src" };
        let joint = self.tokens.get(self.next).map(|placed| placed.token);
        let behind = self.tokens.get(self.next + 1).map(|placed| placed.token);
        if behind == Some(Token::Word(other)) {
            let ends: &[Way] = match joint {
                Some(Token::Or) => &[Way::Either],
                Some(Token::And) => &[Way::Source, Way::Destination],
                _ => &[],
            };
            if !ends.is_empty() {
                self.next += 2;
                return ends;
            }
        }
        if first == "src" { &[Way::Source] } else { &[Way::Destination] }
    }

    /// A value without words before it.
    fn value_alone(&mut self, word: &'t str, at: usize) -> Parsed<Expression> {
        let read = |qualifiers: &Qualifiers<'t>| {
            let value = qualifiers.kind.read(qualifiers.kind.word(), word)?;
            Some(qualifiers.with(&value))
        };
        self.last.as_ref().and_then(read).ok_or_else(|| (at, unknown(word)))
    }

    fn vlan(&mut self) -> Parsed<Term> {
        let id = self.word().and_then(|word| word.parse::<u16>().ok());
        if let Some(id) = id.filter(|id| *id >= 4_096) {
            let (after, needs) = ("vlan".to_owned(), "a number below 4096");
            let got = format!(", not `{id}`");
            return Err((self.here(), Mistake::Argument { after, needs, got }));
        }
        self.next += usize::from(id.is_some());
        Ok(Term::Vlan(id))
    }

    fn argument<T>(
        &mut self,
        after: &str,
        needs: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Parsed<T> {
        if let Some(value) = self.word().and_then(read) {
            self.next += 1;
            return Ok(value);
        }
        let got = written(self.tokens.get(self.next).map(|placed| placed.token));
        Err((self.here(), Mistake::Argument { after: after.to_owned(), needs, got }))
    }

    /// The next token, if it is a word.
    fn word(&self) -> Option<&'t str> {
        match self.tokens.get(self.next)?.token {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}
