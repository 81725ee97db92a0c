import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** HikariCP, whose connections several threads share. */
final class Pool {
    private Pool() {}

    static HikariDataSource open(String url, String user, String password, boolean autoCommit) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername(user);
        config.setPassword(password);
        config.setAutoCommit(autoCommit);
        config.setMaximumPoolSize(4);
        config.setMaxLifetime(30_000);
        config.setConnectionTimeout(30_000);
        return new HikariDataSource(config);
    }

    /** Threads add to one row, and roll back what they have changed in each second transaction. */
    static void use(HikariDataSource pool) throws Exception {
        try (Connection db = pool.getConnection()) {
            Checks.run(db, "CREATE TABLE sums (id INT PRIMARY KEY, a INT)");
            Checks.run(db, "INSERT INTO sums VALUES (1, 0)");
            if (!db.getAutoCommit()) {
                db.commit();
            }
        }
        List<Callable<Void>> work = new ArrayList<>();
        for (int n = 0; n < 8; n++) {
            work.add(() -> {
                for (int m = 0; m < 20; m++) {
                    transaction(pool, m % 2 == 0);
                    read(pool, m);
                }
                return null;
            });
        }
        var threads = Executors.newFixedThreadPool(8);
        try {
            for (Future<Void> done : threads.invokeAll(work)) {
                done.get();
            }
        } finally {
            threads.shutdownNow();
        }
        leave(pool);
        try (Connection db = pool.getConnection()) {
            Checks.same(Checks.value(db, "SELECT a FROM sums"), "80", "the sum of all threads");
        }
    }

    private static void transaction(HikariDataSource pool, boolean commits) throws Exception {
        try (Connection db = pool.getConnection()) {
            db.setAutoCommit(false);
            db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            int before = Integer.parseInt(Checks.value(db, "SELECT a FROM sums WHERE id = 1 FOR UPDATE"));
            Checks.change(db, "UPDATE sums SET a = ? WHERE id = 1", before + 1);
            // What is neither committed nor rolled back is rolled back when the connection is returned.
            if (commits) {
                db.commit();
            }
        }
    }

    private static void read(HikariDataSource pool, int n) throws Exception {
        try (Connection db = pool.getConnection()) {
            Checks.same(db.getAutoCommit(), pool.isAutoCommit(), "autocommit of a connection that is used again");
            Checks.same(db.getTransactionIsolation(), Connection.TRANSACTION_REPEATABLE_READ, "its isolation");
            Checks.same(Checks.prepared(db, "SELECT CAST(? + 1 AS INT)", n), "" + (n + 1), "a read");
            Checks.same(Checks.fails(() -> Checks.value(db, "SELECT * FROM missing")), 1146, "no table");
        }
    }

    /** The isolation, and the promise to write nothing, of one user are not those of the next one. */
    private static void leave(HikariDataSource pool) throws Exception {
        try (Connection db = pool.getConnection()) {
            db.setAutoCommit(false);
            db.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            db.setReadOnly(true);
            Checks.value(db, "SELECT COUNT(*) FROM sums");
        }
        for (int n = 0; n < 4; n++) {
            try (Connection db = pool.getConnection()) {
                Checks.same(db.getTransactionIsolation(), Connection.TRANSACTION_REPEATABLE_READ, "its isolation");
                Checks.same(db.isReadOnly(), false, "it may write");
                Checks.change(db, "UPDATE sums SET a = a + ? WHERE id = 1", 0);
                if (!db.getAutoCommit()) {
                    db.commit();
                }
            }
        }
    }

    static void where(HikariDataSource pool) throws Exception {
        String reads = pool.isAutoCommit() ? "reader" : "writer";
        for (int n = 0; n < 4; n++) {
            try (Connection db = pool.getConnection()) {
                Checks.same(Where.who(db), List.of(reads, reads), "reads");
            }
            try (Connection db = pool.getConnection()) {
                db.setAutoCommit(false);
                Checks.change(db, "INSERT INTO t (a) VALUES (?)", n % 2 + 1);
                Checks.same(Where.who(db), List.of("writer", "writer"), "reads in a transaction");
                db.commit();
                Checks.change(db, "INSERT INTO t (a) VALUES (?)", 3);
            }
        }
    }
}
