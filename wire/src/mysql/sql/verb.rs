//! The words with which statements begin.

use super::{
    Class,
    keyword::Keyword,
    scan::{Scan, State, is_verb},
};

impl Scan {
    /// The first word of a statement.
    pub(super) fn first(&mut self, keyword: Keyword) {
        use Keyword as Key;
        let (class, state) = match keyword {
            Key::Select | Key::Values | Key::Table | Key::Do | Key::Help => (Class::Read, State::Rest),
            Key::With => (Class::Read, State::With(self.depth)),
            Key::Explain | Key::Describe | Key::Desc => (Class::Read, State::Explain),
            Key::Insert | Key::Replace | Key::Update | Key::Delete | Key::Call => (Class::Write, State::Rest),
            Key::Alter
            | Key::Grant
            | Key::Import
            | Key::Optimize
            | Key::Rename
            | Key::Repair
            | Key::Revoke
            | Key::Truncate => (Class::Ddl, State::Rest),
            Key::Commit | Key::Rollback | Key::Savepoint | Key::Xa => (Class::Transaction, State::Rest),
            Key::Use => (Class::Session, State::Rest),
            // GET DIAGNOSTICS asks for what the statement before has left.
            Key::Get => {
                self.statement.reads_session = true;
                (Class::Session, State::Rest)
            }
            Key::Handler | Key::Prepare | Key::Deallocate => {
                self.statement.changes_session = true;
                (Class::Session, State::Rest)
            }
            Key::Execute => {
                self.statement.changes_session = true;
                (Class::Unknown, State::Rest)
            }
            Key::Set => (Class::Session, State::Set),
            Key::Show => (Class::Admin, State::Show),
            // Stages and locks of a backup are the connection's.
            Key::Backup => {
                self.statement.changes_session = true;
                (Class::Admin, State::Rest)
            }
            Key::Binlog
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
            | Key::Uninstall => (Class::Admin, State::Rest),
            Key::Analyze
            | Key::Begin
            | Key::Create
            | Key::Drop
            | Key::Flush
            | Key::Load
            | Key::Lock
            | Key::Release
            | Key::Start
            | Key::Unlock => (Class::Unknown, State::Second(keyword)),
            _ => (Class::Unknown, State::Rest),
        };
        let is_explained = self.state == State::Explain;
        self.begin(class, state);
        // What is explained can be a read or a change of data only.
        if is_explained && !matches!(class, Class::Read | Class::Write) {
            self.begin(Class::Unknown, State::Rest);
        }
    }

    /// The second word of a statement with this verb. `is_end`: no further token follows.
    pub(super) fn second(&mut self, verb: Keyword, keyword: Keyword, is_end: bool) {
        use Keyword as Key;
        let class = match (verb, keyword) {
            (Key::Analyze, Key::Table | Key::Tables | Key::Local) => Class::Ddl,
            // ANALYZE executes the statement behind it.
            (Key::Analyze, Key::Format) => return self.begin(Class::Read, State::Explain),
            (Key::Analyze, verb) if verb == Key::With || is_verb(verb) => {
                self.state = State::Explain;
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
            (Key::Lock, Key::Table | Key::Tables) => {
                self.statement.changes_session = true;
                Class::Transaction
            }
            (Key::Unlock, Key::Table | Key::Tables) => Class::Transaction,
            (Key::Lock, Key::Instance) => {
                self.statement.changes_session = true;
                Class::Admin
            }
            (Key::Unlock, Key::Instance) => Class::Admin,
            (Key::Release, Key::Savepoint) => Class::Transaction,
            (Key::Start, Key::Transaction) => Class::Transaction,
            (Key::Start, Key::Other) if !is_end => Class::Admin,
            _ => Class::Unknown,
        };
        self.begin(class, State::Rest);
    }
}
