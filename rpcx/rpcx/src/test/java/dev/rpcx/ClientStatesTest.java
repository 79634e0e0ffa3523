package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goes through all cells of the tables in {@code rpcx/spec/states.md} for frames that a client receives. The server is
 * one that a test controls byte by byte.
 */
@Timeout(300)
class ClientStatesTest {
    private static final List<String> KINDS = List.of("unary", "blocking", "notice", "brings", "takes", "both");

    /** If there are more failures, they have one cause, and each of them waits for one time limit. */
    private static final int MAX_FAILURES = Integer.getInteger("rpcx.walk.failures", 10);

    private final Client client = Client.standard();
    private final List<String> failures = new ArrayList<>();
    private int walked;

    @AfterEach
    void stop() {
        client.close();
    }

    private static StateTables.Table calls(String kind) {
        return StateTables.read("Client: " + (kind.equals("blocking") ? "unary" : kind));
    }

    /**
     * Walks a cell. If its frame is taken without an answer, this method also walks the same frame with a payload that
     * cannot be read.
     */
    private void walk(String kind, String connection, String state, StateTables.Row row, String column) {
        walk(kind, connection, state, row.frame(), row.cell(column));
        StateTables.Row other = row.unreadable(column);
        if (other != null) {
            walk(kind, connection, state, other.frame(), other.cell(column));
        }
    }

    private void walk(String kind, String connection, String state, String row, String says) {
        walked++;
        try (ClientWalk walk = new ClientWalk(client, kind)) {
            walk.drive(connection, state);
            walk.walk(row, connection, state, StateTables.Reaction.of(says));
        } catch (Exception | AssertionError failure) {
            String cell = kind + ", " + connection + ", " + state + ", " + row + " (expected: " + says + ")";
            failures.add(cell + ": " + String.valueOf(failure).replaceAll("\\s+", " "));
            System.out.println("wrong " + failures.get(failures.size() - 1));
            assertThat(failures).as("%d cells", walked).hasSizeLessThan(MAX_FAILURES);
        }
    }

    private void told(String what) {
        LongForm.figure(2, "%d cells of the client's states walked: %s", walked, what);
        assertThat(failures).as("%d of %d cells", failures.size(), walked).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"set", "draining"})
    void eachFrameOfACallInEachStateDoesWhatItsCellSays(String connection) {
        for (String kind : KINDS) {
            StateTables.Table table = calls(kind);
            for (String state : table.columns()) {
                for (StateTables.Row row : table.rows()) {
                    if (!row.cell(state).equals("–")) {
                        walk(kind, connection, state, row, state);
                    }
                }
            }
        }
        told("frames of calls, connection " + connection);
    }

    @ParameterizedTest
    @ValueSource(strings = {"set", "draining"})
    void eachFrameOfAConnectionInEachStateDoesWhatItsCellSays(String connection) {
        StateTables.Table table = StateTables.read("Client: connection");
        for (String kind : KINDS) {
            for (String state : calls(kind).columns()) {
                for (StateTables.Row row : table.rows()) {
                    walk(kind, connection, state, row, connection);
                }
            }
        }
        told("frames of connections, connection " + connection);
    }

    @Test
    void eachFrameOfAConnectionDoesWhatItsCellSaysBeforeTheWholeDictionary() {
        StateTables.Table table = StateTables.read("Client: connection");
        for (String connection : List.of("open", "more")) {
            for (StateTables.Row row : table.rows()) {
                walk("unary", connection, "none", row, connection);
            }
        }
        told("frames of connections before the dictionary is whole");
    }
}
