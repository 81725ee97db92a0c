import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Objects;

/** What the programs of both drivers ask, and how they compare what they get. */
final class Checks {
    static final String TEXT = "text '%d' äöü€😀 \"twice\" back\\slash";

    interface Call {
        void run() throws Exception;
    }

    private Checks() {}

    static void same(Object got, Object wanted, String what) {
        if (got instanceof List<?> one && wanted instanceof List<?> other && one.size() == other.size()) {
            for (int n = 0; n < one.size(); n++) {
                same(one.get(n), other.get(n), what + " " + n);
            }
        } else if (!Objects.deepEquals(got, wanted)) {
            throw new AssertionError(what + ": " + got + " and not " + wanted);
        }
    }

    /** The number of the error that a call has. */
    static int fails(Call call) throws Exception {
        try {
            call.run();
        } catch (SQLException error) {
            return error.getErrorCode();
        }
        throw new AssertionError("no error");
    }

    static int run(Connection db, String text) throws SQLException {
        try (Statement statement = db.createStatement()) {
            return statement.executeUpdate(text);
        }
    }

    static String value(Connection db, String text) throws SQLException {
        try (Statement statement = db.createStatement(); ResultSet found = statement.executeQuery(text)) {
            return first(found);
        }
    }

    static String prepared(Connection db, String text, Object... arguments) throws SQLException {
        try (PreparedStatement statement = prepare(db, text, arguments);
                ResultSet found = statement.executeQuery()) {
            return first(found);
        }
    }

    static int change(Connection db, String text, Object... arguments) throws SQLException {
        try (PreparedStatement statement = prepare(db, text, arguments)) {
            return statement.executeUpdate();
        }
    }

    static PreparedStatement prepare(Connection db, String text, Object... arguments) throws SQLException {
        PreparedStatement statement = db.prepareStatement(text);
        for (int n = 0; n < arguments.length; n++) {
            statement.setObject(n + 1, arguments[n]);
        }
        return statement;
    }

    private static String first(ResultSet found) throws SQLException {
        same(found.next(), true, "a row");
        return found.getString(1);
    }
}
