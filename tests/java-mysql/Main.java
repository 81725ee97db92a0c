import java.sql.Connection;
import java.sql.DriverManager;

/** Mode, address of the proxy, address of the server, user, password. */
public final class Main {
    private Main() {}

    public static void main(String[] words) throws Exception {
        String mode = words[0];
        String url = words[1];
        String server = words[2];
        String user = words[3];
        String password = words[4];
        if (mode.startsWith("pool")) {
            try (var pool = Pool.open(url, user, password, !mode.contains("without-autocommit"))) {
                if (mode.endsWith("where")) {
                    Pool.where(pool);
                } else {
                    Pool.use(pool);
                }
            }
            return;
        }
        try (Connection db = DriverManager.getConnection(url, user, password)) {
            switch (mode) {
                case "where" -> {
                    if (url.contains("useCursorFetch=true")) {
                        Where.cursors(db);
                    } else {
                        // MariaDB's driver resets at the server only if it is told to.
                        Where.look(db, url.contains("mysql:") || url.contains("useResetConnection=true"));
                    }
                }
                case "where-only-reads" -> Where.onlyReads(db);
                default -> {
                    try (Connection direct = DriverManager.getConnection(server, user, password)) {
                        Checks.same(Types.of(db), Types.of(direct), "types as at the server");
                    }
                    new Services(db).use(url.contains("allowMultiQueries=true"));
                }
            }
        }
    }
}
