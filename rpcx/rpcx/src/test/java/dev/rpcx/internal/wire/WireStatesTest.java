package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.LongForm;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.ServerWalk;
import dev.rpcx.StateTables;
import dev.rpcx.WalkedService;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goes through all cells of the tables in {@code rpcx/spec/states.md} for frames that a server receives, over sockets.
 * Another client is served all the time.
 */
@Timeout(300)
class WireStatesTest {
    private static final List<String> KINDS = List.of("unary", "notice", "brings", "takes", "both");
    private static final List<String> PLACES = List.of("Elsewhere", "Loop");

    @RPCXClient(remoteServerName = "walked")
    interface Unhurt {
        @Method("echo")
        String echo(String text);
    }

    /** The walk stops after this many failures: more have one cause, and each of them waits for a time limit. */
    private static final int MAX_FAILURES = Integer.getInteger("rpcx.walk.failures", 10);

    private final WalkedService service = new WalkedService();
    private final List<String> failures = new ArrayList<>();
    private Server server;
    private Client client;
    private Unhurt unhurt;
    private int walked;

    @BeforeEach
    void start() {
        server = server();
        client = Client.standard();
        unhurt = client.create(Unhurt.class, "127.0.0.1", server.port());
    }

    private Server server() {
        return Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxCalls(100)
                .build()
                .start();
    }

    @AfterEach
    void stop() {
        client.close();
        await().until(() ->
                Inside.core(server).connections() == 0 && Inside.core(server).running() == 0);
        server.stop(Duration.ofMillis(200));
    }

    private void told(String what) {
        LongForm.figure(2, "%d cells of the server's states walked: %s", walked, what);
        assertThat(failures).as("%d of %d cells", failures.size(), walked).isEmpty();
    }

    /** A cell of a table in one state of the connection. */
    private record Cell(String kind, String place, String connection, String state, String row, String says) {
        @Override
        public String toString() {
            return kind + place + ", " + connection + ", " + state + ", " + row + " (expected: " + says + ")";
        }

        /** Returns whether another call has to keep the connection open, since its client drains. */
        boolean wantsHolder() {
            return clientDrains() && (state.equals("none") || state.equals("over"));
        }

        boolean serverDrains() {
            return connection.equals("server draining") || connection.equals("both draining");
        }

        boolean clientDrains() {
            return connection.equals("client draining") || connection.equals("both draining");
        }

        StateTables.Reaction reaction() {
            StateTables.Reaction said = StateTables.Reaction.of(says);
            boolean first = row.startsWith("REQUEST") || row.startsWith("NOTICE");
            boolean taken = !said.next().isEmpty() && !said.answer().startsWith("ERROR");
            return clientDrains() && first && (taken || says.equals("ERROR 5 not"))
                    ? new StateTables.Reaction("ERROR 3 not", "over")
                    : said;
        }
    }

    private List<Cell> callCells(String kind, String place, String connection) {
        return cells(StateTables.read("Server: " + kind), kind, place, connection, null);
    }

    private List<Cell> connectionCells(String kind, String place, String connection) {
        StateTables.Table calls = StateTables.read("Server: " + kind);
        StateTables.Table frames = StateTables.read("Server: connection");
        List<Cell> cells = new ArrayList<>();
        for (String state : calls.columns()) {
            if (exists(state, place)) {
                for (StateTables.Row row : frames.rows()) {
                    cells.add(new Cell(kind, place, connection, state, row.frame(), row.cell(connection)));
                    StateTables.Row other = row.unreadable(connection);
                    if (other != null) {
                        cells.add(new Cell(kind, place, connection, state, other.frame(), other.cell(connection)));
                    }
                }
            }
        }
        return cells;
    }

    private static List<Cell> cells(
            StateTables.Table table, String kind, String place, String connection, String onlyState) {
        List<Cell> cells = new ArrayList<>();
        for (String state : table.columns()) {
            for (StateTables.Row row : table.rows()) {
                String says = row.cell(state);
                if (!says.equals("–") && exists(state, place) && (onlyState == null || onlyState.equals(state))) {
                    cells.add(new Cell(kind, place, connection, state, row.frame(), says));
                    StateTables.Row other = row.unreadable(state);
                    if (other != null) {
                        cells.add(new Cell(kind, place, connection, state, other.frame(), other.cell(state)));
                    }
                }
            }
        }
        return cells;
    }

    private static boolean exists(String state, String place) {
        return !(state.equals("running") && place.equals("Loop"));
    }

    /** Brings the cell's connection into the state in which its row is sent. */
    private ServerWalk prepared(int port, Cell cell, boolean holds) throws Exception {
        ServerWalk walk = new ServerWalk(service, port, cell.kind, cell.place, cell.connection.equals("set"));
        try {
            if (holds) {
                walk.hold();
            }
            walk.drive(cell.state);
            return walk;
        } catch (Exception | AssertionError e) {
            walk.close();
            throw e;
        }
    }

    private void walk(ServerWalk walk, Cell cell) throws Exception {
        if (cell.serverDrains()) {
            RawPeer.Frame goAway = walk.peer.readAnswer();
            assertThat(goAway.type()).as(() -> ServerWalk.told(goAway)).isEqualTo(Wire.GOAWAY);
        }
        if (cell.clientDrains()) {
            walk.peer.send(walk.row("GOAWAY", cell.state));
            walk.clientDrains = true;
        }
        walk.endWalk(walk.act(cell.row, walk.row(cell.row, cell.state), cell.state, cell.reaction()));
    }

    private void failed(Object cell, Throwable failure) {
        failures.add(cell + ": " + String.valueOf(failure).replaceAll("\\s+", " "));
        System.out.println("wrong " + failures.get(failures.size() - 1));
        assertThat(failures).as("%d cells", walked).hasSizeLessThan(MAX_FAILURES);
    }

    private void walkOneByOne(List<Cell> cells, boolean holds) {
        for (Cell cell : cells) {
            walked++;
            try {
                ServerWalk walk = prepared(server.port(), cell, holds || cell.wantsHolder());
                try {
                    walk(walk, cell);
                } finally {
                    walk.close();
                }
            } catch (Exception | AssertionError failure) {
                failed(cell, failure);
            }
            assertThat(unhurt.echo("beside")).isEqualTo("beside");
        }
    }

    /**
     * A server that drains accepts no connections. So all connections are open and in their states before it drains.
     */
    private void walkTogether(List<Cell> cells, boolean holds) throws Exception {
        Server draining = server();
        List<ServerWalk> walks = new ArrayList<>();
        try {
            for (Cell cell : cells) {
                walks.add(prepared(draining.port(), cell, holds || cell.wantsHolder()));
            }
            Inside.core(draining).drain(Duration.ofMinutes(1));
            for (int i = 0; i < cells.size(); i++) {
                walked++;
                ServerWalk walk = walks.get(i);
                try {
                    walk(walk, cells.get(i));
                } catch (Exception | AssertionError failure) {
                    failed(cells.get(i), failure);
                } finally {
                    walk.close();
                }
            }
            await().until(() -> Inside.core(draining).connections() == 0
                    && Inside.core(draining).running() == 0);
        } finally {
            for (ServerWalk walk : walks) {
                walk.close();
            }
            draining.stop(Duration.ofMillis(100));
        }
        assertThat(unhurt.echo("beside")).isEqualTo("beside");
    }

    @ParameterizedTest
    @ValueSource(strings = {"open", "set", "client draining"})
    void eachFrameOfACallInEachStateDoesWhatItsCellSays(String connection) {
        for (String kind : KINDS) {
            for (String place : PLACES) {
                walkOneByOne(callCells(kind, place, connection), false);
            }
        }
        told("frames of calls, connection " + connection);
    }

    @ParameterizedTest
    @ValueSource(strings = {"server draining", "both draining"})
    void eachFrameOfACallDoesWhatItsCellSaysAfterTheServersGoAway(String connection) throws Exception {
        for (String kind : KINDS) {
            for (String place : PLACES) {
                walkTogether(callCells(kind, place, connection), false);
            }
        }
        told("frames of calls, connection " + connection);
    }

    @ParameterizedTest
    @ValueSource(strings = {"open", "set", "client draining"})
    void eachFrameOfAConnectionInEachStateDoesWhatItsCellSays(String connection) {
        for (String kind : KINDS) {
            for (String place : LongForm.ON ? PLACES : PLACES.subList(0, 1)) {
                walkOneByOne(connectionCells(kind, place, connection), true);
            }
        }
        told("frames of connections, connection " + connection);
    }

    @ParameterizedTest
    @ValueSource(strings = {"server draining", "both draining"})
    void eachFrameOfAConnectionDoesWhatItsCellSaysAfterTheServersGoAway(String connection) throws Exception {
        for (String kind : KINDS) {
            for (String place : LongForm.ON ? PLACES : PLACES.subList(0, 1)) {
                walkTogether(connectionCells(kind, place, connection), true);
            }
        }
        told("frames of connections, connection " + connection);
    }

    @Test
    void eachPayloadDoesWhatItsRowSays() {
        for (StateTables.Row row : StateTables.read("Server: payloads").rows()) {
            walked++;
            try {
                ServerWalk walk = new ServerWalk(service, server.port(), "brings", "Elsewhere", false);
                try {
                    walk.hold();
                    walk.drive("waiting");
                    ByteBuf payload = Unpooled.wrappedBuffer(
                            ByteBufUtil.decodeHexDump(row.cell("payload").replace(" ", "")));
                    int type = ServerWalk.type(row.frame());
                    ByteBuf frame = RawPeer.frame(type, type == Wire.SETTINGS ? 0 : ServerWalk.ID, payload);
                    walk.endWalk(
                            walk.act(row.frame(), frame, "waiting", StateTables.Reaction.of(row.cell("reaction"))));
                } finally {
                    walk.close();
                }
            } catch (Exception | AssertionError failure) {
                failed(row, failure);
            }
        }
        told("payloads");
    }
}
