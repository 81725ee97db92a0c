//! One statement, word by word.

use super::{
    Class, Statement,
    keyword::Keyword,
    show,
    token::{Token, Tokens},
};

/// The context that gives the next word its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It says what the statement does.
    First,
    /// It is an option of EXPLAIN, a table, or the first of a statement.
    Explain,
    /// It names a table expression, until the first verb that is as deep as WITH.
    With(u32),
    /// It is what SHOW shows.
    Show,
    /// It is what is set.
    Set,
    /// It is set for one statement, which begins behind FOR.
    SetStatement,
    /// It says what the verb is about.
    Second(Keyword),
    /// It can only make something worse.
    Rest,
}

/// The state of the scan of a statement.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) statement: Statement,
    pub(super) state: State,
    /// Parentheses that are open.
    pub(super) depth: u32,
    /// The last token opens the arguments of LAST_INSERT_ID.
    pub(super) opens_last_insert_id: bool,
    /// The token before, and the one before that.
    pub(super) last: Token,
    pub(super) before: Token,
}

impl Scan {
    pub(super) const fn new() -> Self {
        Self {
            statement: Statement::EMPTY,
            state: State::First,
            depth: 0,
            opens_last_insert_id: false,
            last: Token::End,
            before: Token::End,
        }
    }

    /// The classification of the statement that has ended.
    pub(super) fn end(mut self) -> Statement {
        if let State::Second(verb) = self.state {
            self.second(verb, Keyword::Other, true);
        }
        let all = self.statement;
        let asks_session = all.reads_session || all.changes_session;
        match all.class {
            Class::Read if asks_session => Statement {
                class: Class::Session,
                ..all
            },
            _ => all,
        }
    }

    /// Takes the next token, which does not end the statement.
    #[inline]
    pub(super) fn take(&mut self, token: Token, tokens: &Tokens<'_>) {
        if self.state != State::Rest {
            self.advance(token, tokens);
        }
        self.trigger(token, tokens);
        match token {
            Token::Mark(b'(') => self.depth += 1,
            Token::Mark(b')') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.before = self.last;
        self.last = token;
    }

    pub(super) fn begin(&mut self, class: Class, state: State) {
        self.statement.class = class;
        self.statement.is_empty = false;
        self.state = state;
    }

    pub(super) fn raise(&mut self, class: Class) {
        self.statement.class = self.statement.class.raised(class);
    }

    fn advance(&mut self, token: Token, tokens: &Tokens<'_>) {
        match self.state {
            State::First => match token {
                Token::Mark(b'(') => self.statement.is_empty = false,
                Token::Word(keyword, ..) => self.first(keyword),
                _ => self.begin(Class::Unknown, State::Rest),
            },
            State::Explain => self.explain(token),
            State::With(depth) if self.depth == depth => self.with(token.keyword()),
            State::With(_) => {}
            State::Show => match token {
                Token::Word(
                    Keyword::Full | Keyword::Extended | Keyword::Global | Keyword::Session | Keyword::Local,
                    ..,
                ) => {}
                Token::Word(_, start, end) => {
                    let class = show::class(tokens.slice(start, end));
                    self.begin(class, State::Rest);
                    self.statement.reads_session |= class == Class::Session;
                }
                _ => self.begin(Class::Admin, State::Rest),
            },
            State::Set => self.set(token),
            State::SetStatement => {
                if self.depth == 0 && token.is(Keyword::For) {
                    self.state = State::First;
                }
            }
            State::Second(verb) => self.second(verb, token.keyword(), false),
            State::Rest => {}
        }
    }

    /// A word behind WITH, outside of the parentheses of its tables.
    fn with(&mut self, keyword: Keyword) {
        match keyword {
            // What was found in the tables holds for the whole.
            Keyword::Select | Keyword::Values | Keyword::Table => self.state = State::Rest,
            _ if is_verb(keyword) => self.begin(Class::Write, State::Rest),
            _ => {}
        }
    }

    /// A token behind EXPLAIN, DESCRIBE or ANALYZE.
    pub(super) fn explain(&mut self, token: Token) {
        use Keyword as Key;
        match token {
            Token::Mark(b'(') => self.state = State::First,
            Token::Mark(b'=') | Token::Text | Token::Number => {}
            _ if self.last == Token::Mark(b'=') => {}
            Token::Word(Key::Extended | Key::Format | Key::Partitions | Key::Analyze, ..) => {}
            // The statement of another connection.
            Token::Word(Key::For, ..) => self.begin(Class::Admin, State::Rest),
            Token::Word(Key::Into, ..) | Token::UserVariable => {}
            Token::Word(keyword, ..) if keyword == Key::With || is_verb(keyword) => self.first(keyword),
            _ => self.state = State::Rest,
        }
    }

    /// A token behind SET.
    fn set(&mut self, token: Token) {
        use Keyword as Key;
        let is_second = self.last.is(Key::Set);
        let is_target = is_second || (self.depth == 0 && self.last == Token::Mark(b','));
        match token {
            // No server reports which user variables were set beside others.
            Token::UserVariable if is_target => self.statement.changes_session = true,
            Token::Word(Key::Statement, ..) if is_second => {
                self.statement.changes_session = true;
                self.state = State::SetStatement;
            }
            Token::Word(Key::Password | Key::Default, ..) if is_second => self.begin(Class::Ddl, State::Rest),
            Token::Word(Key::Resource, ..) if is_second => self.begin(Class::Admin, State::Rest),
            Token::Word(Key::Global | Key::Persist | Key::PersistOnly, ..) | Token::SystemVariable(true)
                if is_target =>
            {
                self.begin(Class::Admin, State::Rest);
            }
            _ => {}
        }
    }
}

/// Can a statement begin with this word that is explained, or that has WITH before it?
pub(super) const fn is_verb(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Select
            | Keyword::Values
            | Keyword::Table
            | Keyword::Insert
            | Keyword::Replace
            | Keyword::Update
            | Keyword::Delete
    )
}
