package dev.parley.work.together;

import dev.parley.spi.records.Entry;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.TreeMap;

/** What really stands in PostgreSQL, read past all services. */
record Tables(int port) {
    private Connection connect() throws SQLException {
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/parley", "parley", "parley");
    }

    /** By id. */
    Map<String, Entry> entries(String service) throws SQLException {
        Map<String, Entry> entries = new TreeMap<>();
        try (Connection connection = connect();
                Statement statement = connection.createStatement();
                ResultSet row =
                        statement.executeQuery("SELECT id, title, author, body FROM parley_" + service + ".entry")) {
            while (row.next()) {
                entries.put(
                        row.getString(1),
                        new Entry(row.getString(1), row.getString(2), row.getString(3), row.getString(4)));
            }
        }
        return entries;
    }

    /** SHA-256 of each photo by its name, as the database itself computes it. */
    Map<String, String> photos(String service) throws SQLException {
        Map<String, String> photos = new TreeMap<>();
        try (Connection connection = connect();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "SELECT name, encode(sha256(content), 'hex') FROM parley_" + service + ".photo")) {
            while (row.next()) {
                photos.put(row.getString(1), row.getString(2));
            }
        }
        return photos;
    }
}
