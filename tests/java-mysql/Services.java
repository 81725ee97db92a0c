import java.io.ByteArrayInputStream;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLTimeoutException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Does what services do with a connection. */
final class Services {
    private static final String TABLE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE,"
            + " b VARCHAR(100), c LONGBLOB) DEFAULT CHARSET utf8mb4";

    private final Connection db;

    Services(Connection db) {
        this.db = db;
    }

    void use(boolean hasTexts) throws Exception {
        Checks.run(db, TABLE);
        rows();
        batches();
        transactions();
        errors();
        if (hasTexts) {
            texts();
        }
        procedure();
        streams();
        limits();
    }

    private void rows() throws Exception {
        try (PreparedStatement insert =
                        db.prepareStatement("INSERT INTO t (a, b) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS);
                PreparedStatement select = db.prepareStatement("SELECT a, b FROM t WHERE id = ?")) {
            for (int n = 1; n <= 10; n++) {
                insert.setInt(1, n);
                insert.setString(2, String.format(Checks.TEXT, n));
                Checks.same(insert.executeUpdate(), 1, "an insert");
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    keys.next();
                    Checks.same(keys.getInt(1), n, "a generated key");
                }
                select.setInt(1, n);
                try (ResultSet found = select.executeQuery()) {
                    found.next();
                    List<Object> row = List.of(found.getInt("a"), found.getString("b"));
                    Checks.same(row, List.of(n, String.format(Checks.TEXT, n)), "a row");
                }
            }
        }
        byte[] bytes = new byte[3 << 20];
        new Random().nextBytes(bytes);
        try (PreparedStatement statement = db.prepareStatement("UPDATE t SET c = ? WHERE id = 1")) {
            statement.setBinaryStream(1, new ByteArrayInputStream(bytes));
            statement.executeUpdate();
        }
        try (Statement statement = db.createStatement();
                ResultSet found = statement.executeQuery("SELECT c, 1 / 0 FROM t WHERE id = 1")) {
            found.next();
            Checks.same(found.getBytes(1), bytes, "a long parameter");
        }
        try (Statement statement = db.createStatement()) {
            statement.executeUpdate("INSERT IGNORE INTO t (a) VALUES (1)");
            Checks.same(statement.getWarnings().getErrorCode(), 1062, "a warning");
        }
        try (Statement statement = db.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE,
                        ResultSet.CONCUR_UPDATABLE);
                ResultSet found = statement.executeQuery("SELECT id, b FROM t WHERE id = 2")) {
            found.next();
            found.updateString("b", "changed in the result");
            found.updateRow();
        }
        Checks.same(Checks.value(db, "SELECT b FROM t WHERE id = 2"), "changed in the result", "a changed row");
    }

    private void batches() throws Exception {
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO t (a, b) VALUES (?, ?)",
                Statement.RETURN_GENERATED_KEYS)) {
            for (int n = 1001; n <= 1100; n++) {
                insert.setInt(1, n);
                insert.setString(2, "of a batch");
                insert.addBatch();
            }
            Checks.same(insert.executeBatch().length, 100, "a batch");
        }
        try (PreparedStatement change = db.prepareStatement("UPDATE t SET b = ? WHERE a = ?")) {
            for (int n = 1001; n <= 1050; n++) {
                change.setString(1, "changed");
                change.setInt(2, n);
                change.addBatch();
            }
            Checks.same(change.executeBatch(), java.util.stream.IntStream.generate(() -> 1).limit(50).toArray(),
                    "a batch of changes");
        }
        try (Statement statement = db.createStatement()) {
            statement.addBatch("DELETE FROM t WHERE a > 1050");
            statement.addBatch("DELETE FROM t WHERE a > 1000");
            Checks.same(statement.executeBatch(), new int[] {50, 50}, "a batch of texts");
        }
    }

    private void transactions() throws Exception {
        db.setAutoCommit(false);
        Checks.run(db, "UPDATE t SET a = a + 100");
        Checks.same(Checks.prepared(db, "SELECT SUM(a) FROM t"), "1055", "the sum in a transaction");
        db.rollback();
        Checks.same(Checks.value(db, "SELECT SUM(a) FROM t"), "55", "the sum after a rollback");
        Checks.run(db, "UPDATE t SET a = 20 WHERE id = 10");
        Savepoint here = db.setSavepoint("here");
        int number = Checks.fails(() -> Checks.change(db, "UPDATE t SET a = ? WHERE id = 2", 1));
        Checks.same(number, 1062, "an error in a transaction");
        Checks.run(db, "DELETE FROM t");
        db.rollback(here);
        db.releaseSavepoint(here);
        db.commit();
        db.setAutoCommit(true);
        Checks.same(Checks.value(db, "SELECT SUM(a) FROM t"), "65", "the sum after a commit");
        db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        db.setReadOnly(true);
        Checks.same(Checks.value(db, "SELECT SUM(a) FROM t"), "65", "the sum that is only read");
        db.setReadOnly(false);
        Checks.run(db, "UPDATE t SET a = 10 WHERE id = 10");
        db.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
    }

    private void errors() throws Exception {
        Checks.same(Checks.fails(() -> Checks.value(db, "SELECT * FROM missing")), 1146, "no table");
        Checks.same(Checks.fails(() -> Checks.prepared(db, "SELECT FROM")), 1064, "no statement");
        int number = Checks.fails(() -> Checks.change(db, "INSERT INTO t (a) VALUES (?)", 1));
        Checks.same(number, 1062, "a key that is there");
        Checks.same(Checks.prepared(db, "SELECT CAST(? + 1 AS INT)", 1), "2", "a statement after errors");
    }

    /** All results of a statement: the first value, or how many rows were changed. */
    private static List<Integer> results(Statement statement, boolean isRows) throws Exception {
        List<Integer> found = new ArrayList<>();
        while (isRows || statement.getUpdateCount() >= 0) {
            if (isRows) {
                ResultSet rows = statement.getResultSet();
                rows.next();
                found.add(rows.getInt(1));
            } else {
                found.add(statement.getUpdateCount());
            }
            isRows = statement.getMoreResults();
        }
        return found;
    }

    private void texts() throws Exception {
        try (Statement statement = db.createStatement()) {
            String text = "SELECT 1; UPDATE t SET b = 'same' WHERE id = 1; SELECT 2";
            Checks.same(results(statement, statement.execute(text)), List.of(1, 1, 2), "the results of a text");
            int number = Checks.fails(() -> results(statement,
                    statement.execute("SELECT 1; SELECT * FROM missing; SELECT 2")));
            Checks.same(number, 1146, "an error among results");
        }
        Checks.same(Checks.value(db, "SELECT 1"), "1", "a statement after it");
    }

    private void procedure() throws Exception {
        try (Statement call = db.createStatement()) {
            Checks.same(results(call, call.execute("CALL two()")), List.of(1, 2, 0), "the results of a procedure");
        }
        try (PreparedStatement call = db.prepareStatement("CALL two()")) {
            Checks.same(results(call, call.execute()), List.of(1, 2, 0), "the results of a prepared call");
        }
    }

    /** Connector/J reads row by row with this size alone; MariaDB's driver refuses it. */
    private static int least(Connection db) throws Exception {
        return db.getMetaData().getDriverName().startsWith("MySQL") ? Integer.MIN_VALUE : 1;
    }

    private void streams() throws Exception {
        for (int size : new int[] {least(db), 100}) {
            try (PreparedStatement statement = db.prepareStatement("SELECT seq FROM seq_1_to_30000",
                    ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
                statement.setFetchSize(size);
                long sum = 0;
                try (ResultSet found = statement.executeQuery()) {
                    while (found.next()) {
                        sum += found.getLong(1);
                    }
                }
                Checks.same(sum, 450015000L, "the sum of a stream");
                try (ResultSet found = statement.executeQuery()) {
                    found.next();
                }
            }
            Checks.same(Checks.value(db, "SELECT 1"), "1", "a statement after a stream that was left");
        }
    }

    private void limits() throws Exception {
        try (Statement statement = db.createStatement()) {
            statement.setMaxRows(3);
            int rows = 0;
            try (ResultSet found = statement.executeQuery("SELECT id FROM t")) {
                while (found.next()) {
                    rows++;
                }
            }
            Checks.same(rows, 3, "rows that are limited");
            statement.setQueryTimeout(1);
            try {
                statement.executeQuery("SELECT SLEEP(30) FROM t");
                throw new AssertionError("it slept");
            } catch (SQLTimeoutException expected) {
                Checks.same(db.isValid(10), true, "the connection after a time-out");
            }
        }
        Checks.same(Checks.value(db, "SELECT COUNT(*) FROM t"), "10", "rows without a limit");
    }
}
