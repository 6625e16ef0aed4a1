//! From text to words.

/// A word of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// `(`.
    Open,
    /// `)`.
    Close,
    /// `!` or `not`.
    Not,
    /// `&&` or `and`.
    And,
    /// `||` or `or`.
    Or,
    /// Any other word.
    Word(&'t str),
}

/// A token with the byte it starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedToken<'t> {
    pub(super) token: Token<'t>,
    pub(super) at: usize,
}

/// Splits a text into tokens. Every text has some reading; what makes no sense is found by the parser.
pub(super) fn tokens(text: &str) -> Vec<PlacedToken<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, len) = match first {
            '(' => (Some(Token::Open), 1),
            ')' => (Some(Token::Close), 1),
            '!' => (Some(Token::Not), 1),
            _ if first.is_whitespace() => (None, first.len_utf8()),
            _ if rest.starts_with("&&") => (Some(Token::And), 2),
            _ if rest.starts_with("||") => (Some(Token::Or), 2),
            _ => {
                // A lone & or | is part of a word: then the message shows it.
                let ends = |(at, c): &(usize, char)| {
                    c.is_whitespace()
                        || matches!(c, '(' | ')' | '!')
                        || rest[*at..].starts_with("&&")
                        || rest[*at..].starts_with("||")
                };
                let len = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
                let token = match &rest[..len] {
                    "not" => Token::Not,
                    "and" => Token::And,
                    "or" => Token::Or,
                    word => Token::Word(word),
                };
                (Some(token), len)
            }
        };
        tokens.extend(token.map(|token| PlacedToken { token, at }));
        at += len;
    }
    tokens
}
