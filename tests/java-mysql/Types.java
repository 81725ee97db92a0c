import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** All that a driver says of a server and of a table of many types, to be compared. */
final class Types {
    private Types() {}

    static List<String> of(Connection db) throws SQLException {
        List<String> all = new ArrayList<>();
        var about = db.getMetaData();
        all.add(about.getDatabaseProductName() + " " + about.getDatabaseProductVersion());
        all.add(db.getTransactionIsolation() + " " + db.getAutoCommit() + " " + db.isReadOnly());
        try (var statement = db.createStatement();
                var found = statement.executeQuery("SELECT * FROM types ORDER BY id")) {
            add(all, found);
        }
        try (PreparedStatement statement = db.prepareStatement("SELECT * FROM types WHERE id > ? ORDER BY id")) {
            statement.setInt(1, 0);
            for (int n = 0; n < 5; n++) {
                try (ResultSet found = statement.executeQuery()) {
                    add(all, found);
                }
            }
        }
        try (CallableStatement call = db.prepareCall("{call adds(?, ?)}")) {
            call.setInt(1, 40);
            call.registerOutParameter(2, java.sql.Types.INTEGER);
            call.execute();
            all.add("" + call.getInt(2));
        }
        try (ResultSet found = about.getColumns(db.getCatalog(), null, "types", "%")) {
            while (found.next()) {
                all.add(found.getString("COLUMN_NAME") + " " + found.getString("TYPE_NAME"));
            }
        }
        return all;
    }

    private static void add(List<String> all, ResultSet found) throws SQLException {
        ResultSetMetaData columns = found.getMetaData();
        for (int n = 1; n <= columns.getColumnCount(); n++) {
            // The proxy does not offer what MariaDB alone tells of columns: that a text is JSON, and what a
            // geometry is.
            String type = columns.getColumnTypeName(n).replace("JSON", "LONGTEXT").replace("POINT", "GEOMETRY");
            all.add(String.join(" ", columns.getColumnName(n), type, columns.getColumnClassName(n),
                    "" + columns.getPrecision(n), "" + columns.getScale(n)));
        }
        while (found.next()) {
            for (int n = 1; n <= columns.getColumnCount(); n++) {
                all.add(read(found, n));
                all.add(found.getString(n));
            }
        }
    }

    /** What a driver makes of a value, or why it makes nothing of it. */
    private static String read(ResultSet found, int n) {
        try {
            Object value = found.getObject(n);
            return value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : "" + value;
        } catch (SQLException error) {
            return error.getMessage();
        }
    }
}
