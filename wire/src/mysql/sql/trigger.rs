//! Words that make a read something else, wherever they stand in a statement.

use super::{
    Class,
    function::{Effect, effect},
    keyword::Keyword,
    scan::Scan,
    token::{Token, Tokens},
};

impl Scan {
    /// Looks at the next token.
    #[inline]
    pub(super) fn trigger(&mut self, token: Token, tokens: &Tokens<'_>) {
        if self.opens_last_insert_id {
            self.opens_last_insert_id = false;
            match token {
                Token::Mark(b')') => self.statement.reads_session = true,
                _ => self.statement.changes_session = true,
            }
        }
        match token {
            Token::Word(Keyword::Other, ..) | Token::Text | Token::Number | Token::Name(..) => {}
            Token::Word(keyword, ..) => self.keyword(keyword),
            Token::Mark(b'(') => self.call(tokens),
            Token::Assign => self.statement.changes_session = true,
            Token::UserVariable | Token::SystemVariable(_) => self.statement.reads_session = true,
            Token::Mark(_) | Token::End => {}
        }
        if self.last.is(Keyword::Into) {
            self.into(token);
        }
    }

    fn keyword(&mut self, keyword: Keyword) {
        use Keyword as Key;
        match keyword {
            Key::Update | Key::Share if self.last.is(Key::For) => self.raise(Class::LockingRead),
            Key::Share if self.last.is(Key::In) && self.before.is(Key::Lock) => {
                self.raise(Class::LockingRead);
            }
            Key::For if self.last.is(Key::Value) && self.before.is(Key::Next) => self.raise(Class::Write),
            Key::For if self.last.is(Key::Value) && self.before.is(Key::Previous) => {
                self.statement.reads_session = true;
            }
            // In sql_mode ORACLE a sequence is asked so.
            Key::Nextval if self.last == Token::Mark(b'.') => self.raise(Class::Write),
            Key::Currval if self.last == Token::Mark(b'.') => self.statement.reads_session = true,
            Key::SqlCalcFoundRows => self.statement.changes_session = true,
            Key::SessionVariables => self.statement.reads_session = true,
            _ => {}
        }
    }

    /// The last token may be the name of a function.
    fn call(&mut self, tokens: &Tokens<'_>) {
        let (Token::Word(_, start, end) | Token::Name(start, end)) = self.last else {
            return;
        };
        match effect(tokens.slice(start, end)) {
            Effect::Nothing => {}
            Effect::LastInsertId => self.opens_last_insert_id = true,
            Effect::ReadsSession => self.statement.reads_session = true,
            Effect::ChangesSession => self.statement.changes_session = true,
            Effect::Writes => self.raise(Class::Write),
            // The name may be that of a table, behind which columns stand.
            Effect::Unknown if self.statement.class.is_read() => self.raise(Class::Unknown),
            Effect::Unknown => {}
        }
    }

    /// Reads the word behind INTO.
    fn into(&mut self, token: Token) {
        if !self.statement.class.is_read() {
            return;
        }
        match token {
            Token::UserVariable => self.statement.changes_session = true,
            Token::Word(Keyword::Outfile | Keyword::Dumpfile, ..) => self.raise(Class::Write),
            _ => self.raise(Class::Unknown),
        }
    }
}
