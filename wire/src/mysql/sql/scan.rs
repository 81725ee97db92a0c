//! One statement, word by word.

use super::{
    Class, Statement,
    function::{Effect, effect},
    keyword::Keyword,
    show,
    token::{Token, Tokens},
};

/// What the next word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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

/// What is known of the statement so far.
#[derive(Debug)]
pub(super) struct Scan {
    statement: Statement,
    place: Place,
    /// Parentheses that are open.
    depth: u32,
    /// The last token opens the arguments of LAST_INSERT_ID.
    opens_last_insert_id: bool,
    /// The token before, and the one before that.
    last: Token,
    before: Token,
}

impl Scan {
    pub(super) const fn new() -> Self {
        Self {
            statement: Statement::EMPTY,
            place: Place::First,
            depth: 0,
            opens_last_insert_id: false,
            last: Token::End,
            before: Token::End,
        }
    }

    /// What the statement does that has ended.
    pub(super) fn end(mut self) -> Statement {
        if let Place::Second(verb) = self.place {
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
        if self.place != Place::Rest {
            self.place(token, tokens);
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

    fn begin(&mut self, class: Class, place: Place) {
        self.statement.class = class;
        self.statement.is_empty = false;
        self.place = place;
    }

    fn raise(&mut self, class: Class) {
        self.statement.class = self.statement.class.raised(class);
    }

    fn place(&mut self, token: Token, tokens: &Tokens<'_>) {
        match self.place {
            Place::First => match token {
                Token::Mark(b'(') => self.statement.is_empty = false,
                Token::Word(keyword, ..) => self.first(keyword),
                _ => self.begin(Class::Unknown, Place::Rest),
            },
            Place::Explain => self.explain(token),
            Place::With(depth) if self.depth == depth => self.with(token.keyword()),
            Place::With(_) => {}
            Place::Show => match token {
                Token::Word(
                    Keyword::Full | Keyword::Extended | Keyword::Global | Keyword::Session | Keyword::Local,
                    ..,
                ) => {}
                Token::Word(_, start, end) => {
                    self.begin(show::class(tokens.slice(start, end)), Place::Rest);
                }
                _ => self.begin(Class::Admin, Place::Rest),
            },
            Place::Set => self.set(token),
            Place::SetStatement => {
                if self.depth == 0 && token.is(Keyword::For) {
                    self.place = Place::First;
                }
            }
            Place::Second(verb) => self.second(verb, token.keyword(), false),
            Place::Rest => {}
        }
    }

    /// The first word of a statement.
    fn first(&mut self, keyword: Keyword) {
        use Keyword as Key;
        let (class, place) = match keyword {
            Key::Select | Key::Values | Key::Table | Key::Do | Key::Help => (Class::Read, Place::Rest),
            Key::With => (Class::Read, Place::With(self.depth)),
            Key::Explain | Key::Describe | Key::Desc => (Class::Read, Place::Explain),
            Key::Insert | Key::Replace | Key::Update | Key::Delete | Key::Call => (Class::Write, Place::Rest),
            Key::Alter
            | Key::Grant
            | Key::Import
            | Key::Optimize
            | Key::Rename
            | Key::Repair
            | Key::Revoke
            | Key::Truncate => (Class::Ddl, Place::Rest),
            Key::Commit | Key::Rollback | Key::Savepoint | Key::Xa => (Class::Transaction, Place::Rest),
            Key::Use | Key::Get => (Class::Session, Place::Rest),
            Key::Handler | Key::Prepare | Key::Deallocate => {
                self.statement.changes_session = true;
                (Class::Session, Place::Rest)
            }
            Key::Execute => {
                self.statement.changes_session = true;
                (Class::Unknown, Place::Rest)
            }
            Key::Set => (Class::Session, Place::Set),
            Key::Show => (Class::Admin, Place::Show),
            Key::Backup
            | Key::Binlog
            | Key::Cache
            | Key::Change
            | Key::Check
            | Key::Checksum
            | Key::Clone
            | Key::Install
            | Key::Kill
            | Key::Purge
            | Key::Reset
            | Key::Restart
            | Key::Shutdown
            | Key::Stop
            | Key::Uninstall => (Class::Admin, Place::Rest),
            Key::Analyze
            | Key::Begin
            | Key::Create
            | Key::Drop
            | Key::Flush
            | Key::Load
            | Key::Lock
            | Key::Release
            | Key::Start
            | Key::Unlock => (Class::Unknown, Place::Second(keyword)),
            _ => (Class::Unknown, Place::Rest),
        };
        let is_explained = self.place == Place::Explain;
        self.begin(class, place);
        // What is explained can be a read or a change of data only.
        if is_explained && !matches!(class, Class::Read | Class::Write) {
            self.begin(Class::Unknown, Place::Rest);
        }
    }

    /// A word behind WITH, outside of the parentheses of its tables.
    fn with(&mut self, keyword: Keyword) {
        match keyword {
            // What was found in the tables holds for the whole.
            Keyword::Select | Keyword::Values | Keyword::Table => self.place = Place::Rest,
            _ if is_verb(keyword) => self.begin(Class::Write, Place::Rest),
            _ => {}
        }
    }

    /// The second word of a statement with this verb. `is_end`: there is none.
    fn second(&mut self, verb: Keyword, keyword: Keyword, is_end: bool) {
        use Keyword as Key;
        let class = match (verb, keyword) {
            (Key::Analyze, Key::Table | Key::Tables | Key::Local) => Class::Ddl,
            // ANALYZE executes the statement behind it.
            (Key::Analyze, Key::Format) => return self.begin(Class::Read, Place::Explain),
            (Key::Analyze, verb) if verb == Key::With || is_verb(verb) => {
                self.place = Place::Explain;
                return self.first(verb);
            }
            (Key::Begin, _) if is_end => Class::Transaction,
            (Key::Begin, Key::Work) => Class::Transaction,
            (Key::Create, Key::Temporary) => {
                self.statement.changes_session = true;
                Class::Ddl
            }
            // CREATE OR REPLACE TEMPORARY.
            (Key::Create, Key::Other | Key::Replace) if !is_end => {
                self.statement.class = Class::Ddl;
                return;
            }
            (Key::Create, _) => Class::Ddl,
            (Key::Drop, Key::Prepare) => {
                self.statement.changes_session = true;
                Class::Session
            }
            (Key::Drop, _) => Class::Ddl,
            (Key::Flush, Key::Table | Key::Tables) => {
                self.statement.changes_session = true;
                Class::Admin
            }
            // FLUSH NO_WRITE_TO_BINLOG TABLES.
            (Key::Flush, _) if !is_end => {
                self.statement.class = Class::Admin;
                return;
            }
            (Key::Flush, _) => Class::Admin,
            (Key::Load, Key::Data | Key::Xml) => Class::Write,
            (Key::Load, Key::Index) => Class::Admin,
            (Key::Lock | Key::Unlock, Key::Table | Key::Tables) => Class::Transaction,
            (Key::Lock | Key::Unlock, Key::Instance) => Class::Admin,
            (Key::Release, Key::Savepoint) => Class::Transaction,
            (Key::Start, Key::Transaction) => Class::Transaction,
            (Key::Start, Key::Other) if !is_end => Class::Admin,
            _ => Class::Unknown,
        };
        self.begin(class, Place::Rest);
    }

    /// A token behind EXPLAIN, DESCRIBE or ANALYZE.
    fn explain(&mut self, token: Token) {
        use Keyword as Key;
        match token {
            Token::Mark(b'(') => self.place = Place::First,
            Token::Mark(b'=') | Token::Text | Token::Number => {}
            _ if self.last == Token::Mark(b'=') => {}
            Token::Word(Key::Extended | Key::Format | Key::Partitions | Key::Analyze, ..) => {}
            // The statement of another connection.
            Token::Word(Key::For, ..) => self.begin(Class::Admin, Place::Rest),
            Token::Word(Key::Into, ..) | Token::UserVariable => {}
            Token::Word(keyword, ..) if keyword == Key::With || is_verb(keyword) => self.first(keyword),
            _ => self.place = Place::Rest,
        }
    }

    /// A token behind SET.
    fn set(&mut self, token: Token) {
        use Keyword as Key;
        let is_second = self.last.is(Key::Set);
        let is_target = is_second || (self.depth == 0 && self.last == Token::Mark(b','));
        match token {
            Token::Word(Key::Statement, ..) if is_second => {
                self.statement.changes_session = true;
                self.place = Place::SetStatement;
            }
            Token::Word(Key::Password | Key::Default, ..) if is_second => self.begin(Class::Ddl, Place::Rest),
            Token::Word(Key::Resource, ..) if is_second => self.begin(Class::Admin, Place::Rest),
            Token::Word(Key::Global | Key::Persist | Key::PersistOnly, ..) | Token::SystemVariable(true)
                if is_target =>
            {
                self.begin(Class::Admin, Place::Rest);
            }
            _ => {}
        }
    }

    /// What makes a read something else, wherever it stands.
    #[inline]
    fn trigger(&mut self, token: Token, tokens: &Tokens<'_>) {
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

    /// What stands behind INTO.
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

/// Can a statement begin with this word that is explained, or that has WITH before it?
const fn is_verb(keyword: Keyword) -> bool {
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
