<?php
// Does with PDO what services do, with statements that the extension writes into the text and with those that the
// server prepares: types, transactions, errors, several results, results that are not buffered, and connections
// that are used again.
declare(strict_types=1);
require 'common.php';

function connect(string $port, array $options = []): PDO
{
    $place = "mysql:host={$GLOBALS['host']};port=$port;dbname={$GLOBALS['database']};charset=utf8mb4";
    return new PDO($place, $GLOBALS['user'], $GLOBALS['password'], $options);
}

function run(PDO $db, string $text, array $arguments = []): PDOStatement
{
    $statement = $db->prepare($text);
    $statement->execute($arguments);
    return $statement;
}

function value(PDO $db, string $text, array $arguments = []): mixed
{
    $statement = run($db, $text, $arguments);
    $found = $statement->fetchColumn();
    $statement->closeCursor();
    return $found;
}

function types(PDO $db): array
{
    $statement = run($db, 'SELECT * FROM types ORDER BY id');
    $columns = array_map($statement->getColumnMeta(...), range(0, $statement->columnCount() - 1));
    return [$db->getAttribute(PDO::ATTR_SERVER_VERSION), $columns, $statement->fetchAll(PDO::FETCH_NUM)];
}

function rows(PDO $db): void
{
    $db->exec('DROP TABLE IF EXISTS t');
    $db->exec(TABLE);
    $insert = $db->prepare('INSERT INTO t (a, b) VALUES (:a, :b)');
    foreach (range(1, 10) as $n) {
        $insert->execute(['a' => $n, 'b' => sprintf(TEXT, $n)]);
        same([$db->lastInsertId(), $insert->rowCount()], ["$n", 1], 'an insert');
    }
    foreach (range(1, 10) as $n) {
        $row = run($db, 'SELECT a, b FROM t WHERE id = ?', [$n])->fetch(PDO::FETCH_NUM);
        same($row, [$n, sprintf(TEXT, $n)], 'a row');
    }
    same($db->query('SELECT a FROM t WHERE b = ' . $db->quote(sprintf(TEXT, 3)))->fetchColumn(), 3, 'a quoted text');
    $long = $db->prepare('UPDATE t SET c = ? WHERE id = 1');
    $file = fopen('php://memory', 'r+');
    fwrite($file, $bytes = random_bytes(3 << 20));
    rewind($file);
    $long->bindParam(1, $file, PDO::PARAM_LOB);
    $long->execute();
    same(value($db, 'SELECT c FROM t WHERE id = 1'), $bytes, 'a long parameter');
}

function transactions(PDO $db): void
{
    $db->beginTransaction();
    $db->exec('UPDATE t SET a = a + 100');
    same(value($db, 'SELECT SUM(a) FROM t'), '1055', 'the sum in a transaction');
    $db->rollBack();
    same([$db->inTransaction(), value($db, 'SELECT SUM(a) FROM t')], [false, '55'], 'the sum after a rollback');
    $db->beginTransaction();
    $db->exec('UPDATE t SET a = 20 WHERE id = 10');
    same(fails(fn() => run($db, 'UPDATE t SET a = ? WHERE id = 2', [1])), 1062, 'an error in a transaction');
    same($db->inTransaction(), true, 'a transaction after an error');
    $db->commit();
    same(value($db, 'SELECT SUM(a) FROM t'), '65', 'the sum after a commit');
    $db->setAttribute(PDO::ATTR_AUTOCOMMIT, 0);
    $db->exec('DELETE FROM t');
    $db->rollBack();
    $db->setAttribute(PDO::ATTR_AUTOCOMMIT, 1);
    same(value($db, 'SELECT SUM(a) FROM t'), '65', 'the sum without autocommit');
}

function errors(PDO $db): void
{
    same(fails(fn() => run($db, 'SELECT * FROM missing')), 1146, 'no table');
    same(fails(fn() => run($db, 'SELECT FROM')), 1064, 'no statement');
    same(fails(fn() => run($db, 'INSERT INTO t (a) VALUES (?)', [1])), 1062, 'a key that is there');
    same((int) value($db, 'SELECT ? + 1', [1]), 2, 'a statement after errors');
}

// A text of several statements cannot be prepared.
function texts(PDO $db): void
{
    $found = $db->query("SELECT 1; UPDATE t SET b = 'same' WHERE id = 1; SELECT 2");
    same($found->fetchColumn(), 1, 'the first result of a text');
    same([$found->nextRowset(), $found->rowCount()], [true, 1], 'the second one');
    same([$found->nextRowset(), $found->fetchColumn(), $found->nextRowset()], [true, 2, false], 'the third one');
    $found = $db->query('SELECT 1; SELECT * FROM missing; SELECT 2');
    same(fails(fn() => $found->nextRowset()), 1146, 'an error among results');
}

function procedure(PDO $db): void
{
    $found = run($db, 'CALL two()');
    same([$found->fetchColumn(), $found->nextRowset(), $found->fetchColumn()], [1, true, 2], 'a procedure');
    $found->closeCursor();
}

function streams(PDO $db): void
{
    $db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);
    $sum = 0;
    foreach (run($db, 'SELECT seq FROM seq_1_to_30000') as [$n]) {
        $sum += $n;
    }
    same($sum, 450015000, 'the sum of a stream');
    same(value($db, 'SELECT seq FROM seq_1_to_30000'), 1, 'a stream that is left');
    $db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, true);
    same(value($db, 'SELECT 1'), 1, 'a statement after it');
}

function again(array $options): void
{
    $options[PDO::ATTR_PERSISTENT] = true;
    $kept = connect($GLOBALS['port'], $options);
    $kept->exec("SET @x = 'of the connection that is kept'");
    $kept->beginTransaction();
    $kept->exec('DELETE FROM t');
    $kept = null;
    $kept = connect($GLOBALS['port'], $options);
    // PDO ends the transaction of a connection that it uses again, and keeps what else the session has.
    same(value($kept, 'SELECT @x'), 'of the connection that is kept', 'the connection that was kept');
    same(value($kept, 'SELECT COUNT(*) FROM t'), 10, 'rows after a transaction that was left');
}

function whereItGoes(PDO $db): void
{
    $who = fn() => value($db, 'SELECT name FROM who WHERE name <> ?', ['']);
    $insert = $db->prepare('INSERT INTO t (a) VALUES (?)');
    same($who(), 'reader', 'a read');
    $insert->execute([1]);
    same($who(), 'reader', 'a read after a write');
    $db->beginTransaction();
    $insert->execute([2]);
    same($who(), 'writer', 'a read in a transaction');
    $db->commit();
    same($who(), 'reader', 'a read after a commit');
    $db->beginTransaction();
    $insert->execute([3]);
    same($who(), 'writer', 'a read in a transaction that is rolled back');
    $db->rollBack();
    same($who(), 'reader', 'a read after a rollback');
    same(value($db, 'SELECT name FROM who FOR UPDATE'), 'writer', 'a read that locks');
}

foreach ([true, false] as $emulated) {
    $options = [PDO::ATTR_EMULATE_PREPARES => $emulated];
    $db = connect($port, $options);
    if ($mode === 'where') {
        whereItGoes($db);
        continue;
    }
    same(types($db), types(connect($direct, $options)), 'types as at the server');
    rows($db);
    transactions($db);
    errors($db);
    if ($emulated) {
        texts($db);
    }
    procedure($db);
    streams($db);
    again($options);
}
