import java.sql.Connection;
import java.util.List;

/** Looks at which server answers, by a table that has another row at each of them. */
final class Where {
    private static final List<String> READERS = List.of("reader", "reader");
    private static final List<String> WRITERS = List.of("writer", "writer");

    private Where() {}

    static List<String> who(Connection db) throws Exception {
        return List.of(Checks.value(db, "SELECT name FROM who"),
                Checks.prepared(db, "SELECT name FROM who WHERE name <> ?", ""));
    }

    /** A session whose statements open cursors is at the writer. */
    static void cursors(Connection db) throws Exception {
        Checks.change(db, "INSERT INTO t (a) VALUES (?), (?)", 1, 2);
        Checks.same(who(db), WRITERS, "reads with cursors");
    }

    static void look(Connection db, boolean resets) throws Exception {
        Checks.same(who(db), READERS, "reads");
        Checks.change(db, "INSERT INTO t (a) VALUES (?)", 1);
        Checks.same(who(db), READERS, "reads after a write");
        db.setAutoCommit(false);
        Checks.change(db, "INSERT INTO t (a) VALUES (?)", 2);
        Checks.same(who(db), WRITERS, "reads in a transaction");
        db.commit();
        Checks.same(who(db), WRITERS, "reads without autocommit");
        Checks.change(db, "INSERT INTO t (a) VALUES (?)", 3);
        db.rollback();
        db.setAutoCommit(true);
        Checks.same(who(db), READERS, "reads with autocommit again");
        Checks.same(Checks.value(db, "SELECT name FROM who FOR UPDATE"), "writer", "a read that locks");
        Checks.run(db, "SET @x = 1");
        Checks.same(who(db), WRITERS, "reads of a session with a variable");
        if (!resets) {
            return;
        }
        if (db instanceof com.mysql.cj.jdbc.JdbcConnection connection) {
            connection.resetServerState();
        } else {
            db.unwrap(org.mariadb.jdbc.Connection.class).reset();
        }
        Checks.same(who(db), READERS, "reads after a reset");
    }

    /** A connection that only reads, as that of a service's transaction which changes nothing. */
    static void onlyReads(Connection db) throws Exception {
        db.setReadOnly(true);
        Checks.same(who(db), READERS, "reads of a connection that only reads");
        db.setReadOnly(false);
        Checks.same(who(db), READERS, "reads after it");
        Checks.change(db, "INSERT INTO t (a) VALUES (?), (?)", 1, 2);
        Checks.same(who(db), READERS, "reads after a write");
    }
}
