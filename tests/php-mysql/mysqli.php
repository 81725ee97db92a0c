<?php
// Does with mysqli what services do: types as text and prepared, transactions, errors, several results, results
// that are not buffered, cursors, long parameters, questions that are not waited for, and connections that are
// used again.
declare(strict_types=1);
require 'common.php';

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

function connect(string $port, string $prefix = ''): mysqli
{
    global $host, $user, $password, $database;
    return new mysqli($prefix . $host, $user, $password, $database, (int) $port);
}

function value(mysqli $db, string $text): mixed
{
    return $db->query($text)->fetch_row()[0];
}

function prepared(mysqli $db, string $text, array $arguments = []): mixed
{
    return $db->execute_query($text, $arguments)->fetch_row()[0];
}

function results(mysqli $db): array
{
    $found = [];
    do {
        $result = $db->store_result();
        $found[] = $result ? $result->fetch_row()[0] : $db->affected_rows;
    } while ($db->more_results() && $db->next_result());
    return $found;
}

// All of a table of many types, as text, prepared and by a cursor, with what is told of the columns.
function types(mysqli $db): array
{
    $found = [$db->server_info, $db->character_set_name()];
    foreach ([MYSQLI_CURSOR_TYPE_NO_CURSOR, MYSQLI_CURSOR_TYPE_READ_ONLY] as $cursor) {
        $statement = $db->prepare('SELECT * FROM types ORDER BY id');
        $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, $cursor);
        $statement->execute();
        $result = $statement->get_result();
        $found[] = [$result->fetch_fields(), $result->fetch_all()];
    }
    $result = $db->query('SELECT * FROM types ORDER BY id');
    return [...$found, $result->fetch_fields(), $result->fetch_all()];
}

function rows(mysqli $db): void
{
    $insert = $db->prepare('INSERT INTO t (a, b) VALUES (?, ?)');
    foreach (range(1, 10) as $n) {
        $insert->execute([$n, sprintf(TEXT, $n)]);
        same([$insert->insert_id, $insert->affected_rows], [$n, 1], 'an insert');
    }
    $select = $db->prepare('SELECT a, b FROM t WHERE id = ?');
    $select->bind_param('i', $id);
    $select->bind_result($a, $b);
    foreach (range(1, 10) as $id) {
        $select->execute();
        same([$select->fetch(), $a, $b, $select->fetch()], [true, $id, sprintf(TEXT, $id), null], 'a row');
    }
    $text = $db->real_escape_string(sprintf(TEXT, 3));
    same(value($db, "SELECT a FROM t WHERE b = '$text'"), '3', 'a text that was quoted');
    $long = $db->prepare('UPDATE t SET c = ? WHERE id = 1');
    $long->bind_param('b', $nothing);
    $bytes = random_bytes(1 << 20);
    foreach (range(1, 3) as $_) {
        $long->send_long_data(0, $bytes);
    }
    $long->execute();
    same(prepared($db, 'SELECT c FROM t WHERE id = 1'), str_repeat($bytes, 3), 'a long parameter');
    $db->query('UPDATE t SET b = CONCAT(b, 1) WHERE id > 5');
    same($db->info, 'Rows matched: 5  Changed: 5  Warnings: 0', 'what is told of an update');
    same([value($db, 'SELECT 1 / 0'), $db->warning_count, $db->get_warnings()->errno], [null, 1, 1365], 'a warning');
}

function transactions(mysqli $db): void
{
    $db->begin_transaction();
    $db->query('UPDATE t SET a = a + 100');
    same(prepared($db, 'SELECT SUM(a) FROM t'), '1055', 'the sum in a transaction');
    $db->rollback();
    same(value($db, 'SELECT SUM(a) FROM t'), '55', 'the sum after a rollback');
    $db->begin_transaction(MYSQLI_TRANS_START_WITH_CONSISTENT_SNAPSHOT);
    $db->query('UPDATE t SET a = 20 WHERE id = 10');
    $db->savepoint('here');
    same(fails(fn() => $db->query('UPDATE t SET a = 1 WHERE id = 2')), 1062, 'an error in a transaction');
    $db->query('DELETE FROM t');
    $db->query('ROLLBACK TO SAVEPOINT here');
    $db->commit();
    same(value($db, 'SELECT SUM(a) FROM t'), '65', 'the sum after a commit');
    $db->autocommit(false);
    $db->query('UPDATE t SET a = 10 WHERE id = 10');
    $db->commit();
    $db->query('DELETE FROM t');
    $db->rollback();
    $db->autocommit(true);
    same(value($db, 'SELECT SUM(a) FROM t'), '55', 'the sum without autocommit');
}

function errors(mysqli $db): void
{
    same(fails(fn() => $db->query('SELECT * FROM missing')), 1146, 'no table');
    same(fails(fn() => $db->prepare('SELECT FROM')), 1064, 'no statement');
    same(fails(fn() => $db->execute_query('INSERT INTO t (a) VALUES (?)', [1])), 1062, 'a key that is there');
    same([$db->errno, $db->sqlstate, $db->error_list[0]['errno']], [1062, '23000', 1062], 'what is told of an error');
    same(prepared($db, 'SELECT ? + 1', [1]), 2.0, 'a statement after errors');
}

function several(mysqli $db): void
{
    $db->multi_query("SELECT 1; UPDATE t SET b = 'same' WHERE id = 1; SELECT 2");
    same(results($db), ['1', 1, '2'], 'the results of a text');
    $db->multi_query('SELECT 1; SELECT * FROM missing; SELECT 2');
    same(fails(fn() => results($db)), 1146, 'an error among results');
    $db->multi_query('CALL two()');
    same(results($db), ['1', '2', 0], 'the results of a procedure');
    $call = $db->prepare('CALL two()');
    $call->execute();
    same($call->get_result()->fetch_row(), [1], 'the first result of a prepared call');
    same([$call->next_result(), $call->get_result()->fetch_row()], [true, [2]], 'the second one');
    same([$call->next_result(), $call->get_result()], [true, false], 'its end');
}

function streams(mysqli $db): void
{
    $result = $db->query('SELECT seq FROM seq_1_to_30000', MYSQLI_USE_RESULT);
    same(array_sum(array_column($result->fetch_all(), 0)), 450015000, 'the sum of a stream');
    $statement = $db->prepare('SELECT seq FROM seq_1_to_30000');
    $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
    $statement->execute();
    $statement->bind_result($n);
    for ($sum = 0; $statement->fetch(); $sum += $n);
    same($sum, 450015000, 'the sum of a cursor');
    $db->query('SELECT seq FROM seq_1_to_30000', MYSQLI_USE_RESULT)->free();
    same(value($db, 'SELECT 1'), '1', 'a statement after a stream that was left');
}

function questions(mysqli $first, mysqli $second): void
{
    $left = [$first, $second];
    foreach ($left as $db) {
        $db->query('SELECT SLEEP(0.2) + a FROM t WHERE id = 1', MYSQLI_ASYNC);
    }
    while ($left) {
        [$read, $error, $reject] = [$left, $left, $left];
        same(mysqli::poll($read, $error, $reject, 30) > 0, true, 'an answer');
        foreach ($read as $db) {
            same($db->reap_async_query()->fetch_row()[0], '1', 'a question that was not waited for');
            unset($left[array_search($db, $left, true)]);
        }
    }
}

function again(mysqli $db): void
{
    $db->query("SET @x = 1, sql_mode = 'ANSI_QUOTES', time_zone = '+03:00'");
    $db->change_user($GLOBALS['user'], $GLOBALS['password'], $GLOBALS['database']);
    same(value($db, 'SELECT @x'), null, 'a variable after a change of the user');
    same(value($db, 'SELECT "a"'), 'a', 'a mode after a change of the user');
    same(fails(fn() => $db->change_user($GLOBALS['user'], 'wrong', '')), 1045, 'a wrong password');
    $kept = connect($GLOBALS['port'], 'p:');
    $kept->query('SET @x = 1');
    $kept->begin_transaction();
    $kept->query('DELETE FROM t');
    $number = $kept->thread_id;
    $kept->close();
    $kept = connect($GLOBALS['port'], 'p:');
    same($kept->thread_id, $number, 'the connection that was kept');
    same([value($kept, 'SELECT @x'), value($kept, 'SELECT COUNT(*) FROM t')], [null, '10'], 'what it knows');
}

function whereItGoes(mysqli $db): void
{
    $who = fn() => [value($db, 'SELECT name FROM who'), prepared($db, 'SELECT name FROM who WHERE name <> ?', [''])];
    $readers = ['reader', 'reader'];
    $writers = ['writer', 'writer'];
    same($who(), $readers, 'reads');
    $insert = $db->prepare('INSERT INTO t (a) VALUES (?)');
    $insert->execute([1]);
    same($who(), $readers, 'reads after a write');
    $db->begin_transaction();
    $insert->execute([2]);
    same($who(), $writers, 'reads in a transaction');
    $db->commit();
    same($who(), $readers, 'reads after a commit');
    $db->begin_transaction();
    $insert->execute([3]);
    $db->rollback();
    same($who(), $readers, 'reads after a rollback');
    same(value($db, 'SELECT name FROM who FOR UPDATE'), 'writer', 'a read that locks');
    $db->autocommit(false);
    same($who(), $writers, 'reads without autocommit');
    $db->commit();
    $db->autocommit(true);
    same($who(), $readers, 'reads with autocommit');
    $db->query('SET @x = 1');
    same($who(), $writers, 'reads of a session with a variable');
    $db->change_user($GLOBALS['user'], $GLOBALS['password'], $GLOBALS['database']);
    same($who(), $readers, 'reads after a change of the user');
}

$db = connect($port);
if ($mode === 'where') {
    whereItGoes($db);
    exit;
}
$server = connect($direct);
same(types($db), types($server), 'types as at the server, in its character set');
$db->set_charset('utf8mb4');
$server->set_charset('utf8mb4');
same(types($db), types($server), 'types as at the server');
$db->query(TABLE);
rows($db);
transactions($db);
errors($db);
several($db);
streams($db);
questions($db, connect($port));
again($db);
