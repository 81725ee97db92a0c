# Does with mysql2 what services do: types as text and prepared, transactions, errors, several results, streams,
# and a pool of connections that threads share.
# frozen_string_literal: true

require 'mysql2'

MODE, HOST, PORT, DIRECT, USER, PASSWORD, DATABASE = ARGV
TEXT = "text '%d' äöü€😀 \"twice\" back\\slash"
TABLE = 'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE, b VARCHAR(100), c LONGBLOB)' \
        ' DEFAULT CHARSET utf8mb4'

def connect(port = PORT, **options)
  Mysql2::Client.new(host: HOST, port: port.to_i, username: USER, password: PASSWORD, database: DATABASE, **options)
end

def same(got, wanted, what)
  return if got == wanted
  raise "#{what}: #{got.inspect} and not #{wanted.inspect}" unless got.is_a?(Array) && got.size > 3

  got.zip(wanted).each_with_index { |(one, other), n| same(one, other, "#{what}: #{n}") }
end

# The number of the error that a block has.
def fails
  yield
  raise 'no error'
rescue Mysql2::Error => e
  e.error_number
end

def value(db, text)
  db.query(text, as: :array).first.first
end

def statement(db, text)
  prepared = db.prepare(text)
  yield prepared
ensure
  prepared&.close
end

def prepared(db, text, *arguments)
  statement(db, text) { |prepared| prepared.execute(*arguments, as: :array).first.first }
end

# All of a table of many types, as text and prepared.
def types(db)
  text = 'SELECT * FROM types ORDER BY id'
  all = ->(answer) { [answer.fields, answer.to_a] }
  answers = [db.query(text), db.query(text, cast: false)].map(&all)
  [db.server_info[:version], *answers, statement(db, text) { |prepared| all.call(prepared.execute) }]
end

def rows(db)
  insert = db.prepare('INSERT INTO t (a, b) VALUES (?, ?)')
  select = db.prepare('SELECT a, b FROM t WHERE id = ?')
  1.upto(10) do |n|
    insert.execute(n, format(TEXT, n))
    same [insert.last_id, insert.affected_rows], [n, 1], 'an insert'
    same select.execute(n).to_a, [{ 'a' => n, 'b' => format(TEXT, n) }], 'a row'
  end
  [insert, select].each(&:close)
  same value(db, "SELECT a FROM t WHERE b = '#{db.escape(format(TEXT, 3))}'"), 3, 'a text that was quoted'
  bytes = Random.bytes(3 << 20)
  statement(db, 'UPDATE t SET c = ? WHERE id = 1') { |long| long.execute(bytes) }
  same prepared(db, 'SELECT c FROM t WHERE id = 1'), bytes, 'a long parameter'
  db.query('UPDATE t SET b = CONCAT(b, 1) WHERE id > 5')
  same db.query_info_string, 'Rows matched: 5  Changed: 5  Warnings: 0', 'what is told of an update'
  same [value(db, 'SELECT 1 / 0'), db.warning_count], [nil, 1], 'a warning'
  same db.query('SHOW WARNINGS').first['Code'], 1365, 'its number'
end

def transactions(db)
  db.query('BEGIN')
  db.query('UPDATE t SET a = a + 100')
  same prepared(db, 'SELECT SUM(a) FROM t'), 1055, 'the sum in a transaction'
  db.query('ROLLBACK')
  same value(db, 'SELECT SUM(a) FROM t'), 55, 'the sum after a rollback'
  db.query('BEGIN')
  db.query('UPDATE t SET a = 20 WHERE id = 10')
  same fails { db.query('UPDATE t SET a = 1 WHERE id = 2') }, 1062, 'an error in a transaction'
  db.query('COMMIT')
  same value(db, 'SELECT SUM(a) FROM t'), 65, 'the sum after a commit'
  db.query('SET autocommit = 0')
  db.query('DELETE FROM t')
  db.query('ROLLBACK')
  db.query('SET autocommit = 1')
  same value(db, 'SELECT SUM(a) FROM t'), 65, 'the sum without autocommit'
end

def errors(db)
  same fails { db.query('SELECT * FROM missing') }, 1146, 'no table'
  same fails { db.prepare('SELECT FROM') }, 1064, 'no statement'
  number = fails { statement(db, 'INSERT INTO t (a) VALUES (?)') { |insert| insert.execute(1) } }
  same number, 1062, 'a key that is there'
  same prepared(db, 'SELECT ? + 1', 1), 2, 'a statement after errors'
end

def results(db, text)
  found = [db.query(text, as: :array).first.first]
  while db.next_result
    result = db.store_result
    found << (result ? result.first.first : db.affected_rows)
  end
  found
end

def several(db)
  db.set_server_option(Mysql2::Client::OPTION_MULTI_STATEMENTS_ON)
  same results(db, "SELECT 1; UPDATE t SET b = 'same' WHERE id = 1; SELECT 2"), [1, 1, 2], 'the results of a text'
  same fails { results(db, 'SELECT 1; SELECT * FROM missing; SELECT 2') }, 1146, 'an error among results'
  same results(db, 'CALL two()'), [1, 2, 0], 'the results of a procedure'
  db.query('CALL two()')
  db.abandon_results!
  db.set_server_option(Mysql2::Client::OPTION_MULTI_STATEMENTS_OFF)
  same fails { db.query('SELECT 1; SELECT 2') }, 1064, 'two statements where one is allowed'
  same value(db, 'SELECT 1'), 1, 'a statement after results that were left'
end

def streams(db)
  text = 'SELECT seq FROM seq_1_to_30000'
  options = { stream: true, cache_rows: false, as: :array }
  # When older statements and results are cleared away, this driver ends the stream that is under way.
  GC.start
  GC.disable
  same db.query(text, **options).sum(&:first), 450_015_000, 'the sum of a stream'
  statement(db, text) do |prepared|
    same prepared.execute(**options).sum(&:first), 450_015_000, 'the sum of a prepared stream'
  end
  GC.enable
  db.query('SELECT SLEEP(0.1) + a FROM t WHERE id = 1', async: true)
  same db.async_result.first.values, [1], 'a question that was not waited for'
end

# A service gives each thread a connection for so long as it uses it.
def pool
  free = Queue.new
  4.times { free << connect(init_command: "SET time_zone = '+03:00'", reconnect: true) }
  threads = 8.times.map do |n|
    Thread.new do
      20.times do |m|
        db = free.pop
        same prepared(db, 'SELECT ? + a FROM t WHERE id = ?', n, m % 9 + 1), n + m % 9 + 1, 'a read of a thread'
        same value(db, 'SELECT @@time_zone'), '+03:00', 'what a connection began with'
        same [db.ping, db.select_db(DATABASE)], [true, DATABASE], 'a connection that is taken'
        free << db
      end
    end
  end
  threads.each(&:join)
end

def where(db)
  who = -> { [value(db, 'SELECT name FROM who'), prepared(db, 'SELECT name FROM who WHERE name <> ?', '')] }
  readers = %w[reader reader]
  writers = %w[writer writer]
  same who.call, readers, 'reads'
  insert = db.prepare('INSERT INTO t (a) VALUES (?)')
  insert.execute(1)
  same who.call, readers, 'reads after a write'
  db.query('BEGIN')
  insert.execute(2)
  same who.call, writers, 'reads in a transaction'
  db.query('COMMIT')
  same who.call, readers, 'reads after a commit'
  db.query('BEGIN')
  insert.execute(3)
  db.query('ROLLBACK')
  same who.call, readers, 'reads after a rollback'
  same value(db, 'SELECT name FROM who FOR UPDATE'), 'writer', 'a read that locks'
  db.query('SET @x = 1')
  same who.call, writers, 'reads of a session with a variable'
end

db = connect
if MODE == 'where'
  where(db)
  exit
end
same types(db), types(connect(DIRECT)), 'types as at the server, in the character set of this driver'
db.close
db = connect(encoding: 'utf8mb4')
same types(db), types(connect(DIRECT, encoding: 'utf8mb4')), 'types as at the server'
db.query(TABLE)
rows(db)
transactions(db)
errors(db)
several(db)
streams(db)
pool
db.close
