package dev.parley.transport.thrift;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.spi.json.Json;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.records.Records;
import dev.parley.transport.thrift.generated.fault.Fault;
import dev.parley.transport.thrift.generated.messages.Messages;
import dev.parley.transport.thrift.generated.messages.TestModelOnlyText;
import dev.parley.work.messages.MessagesWork;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TServiceClient;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.transport.TSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the compiler's own client makes of the server, and what ours makes of a stranger. */
@Timeout(60)
class ThriftIdiomTest {
    private static final Handler ECHO =
            new MessagesWork().node(new Topology.Node("m2", List.of(), Topology.Calling.ONE_AFTER_THE_OTHER), Map.of());

    private final Transport transport = new ThriftTransport(false);

    @Test
    void theGeneratedClientIsAnswered() throws Exception {
        int port = freePort();
        try (var server = serve(port, ECHO);
                TSocket socket = new TSocket("127.0.0.1", port)) {
            assertThat(server).isNotNull();
            socket.open();
            Messages.Client client = new Messages.Client(new TBinaryProtocol(socket));

            assertThat(client.onlyText(new TestModelOnlyText("ž")).getTextField())
                    .isEqualTo("ž");
        }
    }

    @Test
    void errorsAreTheExceptionThatTheInterfaceDeclares() throws Exception {
        int port = freePort();
        Handler failing = new Handler() {
            @Override
            public <Q extends Record, R extends Record> R handle(dev.parley.spi.Operation<Q, R> operation, Q request) {
                throw new CallException(CallException.Code.INVALID, "not that");
            }
        };
        try (var server = serve(port, failing);
                TSocket socket = new TSocket("127.0.0.1", port)) {
            assertThat(server).isNotNull();
            socket.open();
            Messages.Client client = new Messages.Client(new TBinaryProtocol(socket));

            assertThatThrownBy(() -> client.onlyText(new TestModelOnlyText("x")))
                    .isEqualTo(new Fault("INVALID", "not that"));
            assertThatThrownBy(() -> client.onlyText(new TestModelOnlyText("again")))
                    .as("the connection stays in step")
                    .isEqualTo(new Fault("INVALID", "not that"));
        }
    }

    @Test
    void aMethodThatTheInterfaceLacksIsRefusedByTheProcessor() throws Exception {
        int port = freePort();
        try (var server = serve(port, ECHO);
                TSocket socket = new TSocket("127.0.0.1", port)) {
            assertThat(server).isNotNull();
            socket.open();
            TBinaryProtocol protocol = new TBinaryProtocol(socket);
            protocol.writeMessageBegin(new TMessage("noSuchThing", TMessageType.CALL, 1));
            new TestModelOnlyText("x").write(protocol);
            protocol.writeMessageEnd();
            socket.flush();

            assertThatThrownBy(() -> new Replies(protocol).next())
                    .isInstanceOf(TApplicationException.class)
                    .satisfies(e -> assertThat(Errors.read(e).code()).isEqualTo(CallException.Code.NOT_FOUND));
        }
    }

    @Test
    void aConnectionThatIsFreeIsUsedAgain() throws Exception {
        int port = freePort();
        try (var server = serve(port, ECHO);
                var neighbour =
                        new ThriftNeighbour(new TBinaryProtocol.Factory(), new Location.Socket("127.0.0.1", port))) {
            assertThat(server).isNotNull();
            var request = new dev.parley.spi.messages.TestModelOnlyText("x");
            for (int i = 0; i < 20; i++) {
                neighbour.call(dev.parley.spi.messages.Messages.ONLY_TEXT, request, Duration.ofSeconds(20));
            }
            assertThat(neighbour.connections()).isOne();
        }
    }

    @Test
    void messagesIsTheOneContractThatItCarriesAndAnyOtherIsNamed() {
        var location = new Location.Socket("127.0.0.1", 1);
        assertThat(transport.carries(dev.parley.spi.messages.Messages.CONTRACT)).isTrue();
        for (Contract other : List.of(Json.CONTRACT, Lecturers.CONTRACT, Records.CONTRACT)) {
            String refusal = "contract over thrift: " + other.name()
                    + " (expected: messages, the one that has a .thrift interface)";

            assertThat(transport.carries(other)).as(other.name()).isFalse();
            assertThatThrownBy(() -> transport.connect("m1", other, location))
                    .isInstanceOf(BadInput.class)
                    .hasMessage(refusal);
            assertThatThrownBy(() -> transport.serve("m2", other, location, ECHO))
                    .isInstanceOf(BadInput.class)
                    .hasMessage(refusal);
        }
    }

    private Transport.Server serve(int port, Handler handler) {
        return transport.serve(
                "m2", dev.parley.spi.messages.Messages.CONTRACT, new Location.Socket("127.0.0.1", port), handler);
    }

    private static int freePort() throws IOException {
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return probe.getLocalPort();
        }
    }

    /** Reads replies as generated clients do. */
    private static final class Replies extends TServiceClient {
        Replies(TBinaryProtocol protocol) {
            super(protocol);
            seqid_ = 1;
        }

        void next() throws org.apache.thrift.TException {
            receiveBase(new TestModelOnlyText(), "noSuchThing");
        }
    }
}
