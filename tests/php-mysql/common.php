<?php
// What the programs of both extensions have in common.
declare(strict_types=1);

[, $mode, $host, $port, $direct, $user, $password, $database] = $argv;

const TEXT = "text '%d' äöü€😀 \"twice\" back\\slash";
const TABLE = 'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE, b VARCHAR(100), c LONGBLOB)
    DEFAULT CHARSET utf8mb4';

function same(mixed $got, mixed $wanted, string $what): void
{
    if (is_array($got) && is_array($wanted)) {
        same(array_keys($got) === array_keys($wanted), true, "$what: keys");
        foreach ($got as $key => $value) {
            same($value, $wanted[$key], "$what: $key");
        }
    } elseif (is_object($got) && is_object($wanted)) {
        same((array) $got, (array) $wanted, $what);
    } elseif ($got !== $wanted) {
        throw new Exception("$what: " . var_export($got, true) . ' and not ' . var_export($wanted, true));
    }
}

// The number of the error that a call has.
function fails(callable $call): int
{
    try {
        $call();
    } catch (mysqli_sql_exception $error) {
        return $error->getCode();
    } catch (PDOException $error) {
        return $error->errorInfo[1];
    }
    throw new Exception('no error');
}
