package dev.parley.load;

import dev.parley.model.MessageSpec;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.io.IOException;
import java.io.PrintStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The work {@code logins}, whose users log in before they ask, and the technology {@code named}, each of whose calls is
 * a connection of its own that carries the operation's name and ends when the other side closes it.
 */
public final class LoginWork implements Work {
    private record Nothing() {}

    private static final Operation<Nothing, Nothing> LOGIN =
            new Operation<>("login", Operation.Kind.MUTATION, Nothing.class, Nothing.class);
    private static final Operation<Nothing, Nothing> ASK =
            new Operation<>("ask", Operation.Kind.FETCH, Nothing.class, Nothing.class);

    @Override
    public String name() {
        return "logins";
    }

    @Override
    public Contract contract() {
        return new Contract("Logins", List.of(LOGIN, ASK));
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours) {
        throw new UnsupportedOperationException("no service is started");
    }

    @Override
    public Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed) {
        return new Exchange<Nothing, Nothing>() {
            @Override
            public Operation<Nothing, Nothing> operation() {
                return ASK;
            }

            @Override
            public void enter(Neighbour service, Duration timeout) {
                service.call(LOGIN, new Nothing(), timeout);
            }

            @Override
            public Nothing request(long index) {
                return new Nothing();
            }

            @Override
            public boolean isRight(Nothing request, Nothing reply) {
                return true;
            }
        };
    }

    /** Provides the technology. */
    public static final class Provider implements TransportProvider {
        @Override
        public List<Transport> transports() {
            return List.of(new Named());
        }
    }

    private static final class Named implements Transport {
        @Override
        public Technology technology() {
            return new Technology(
                    "named",
                    "Named",
                    Technology.Style.SYNCHRONOUS,
                    Optional.empty(),
                    List.of("java.net.Socket"),
                    "the address",
                    Map.of());
        }

        @Override
        public Server serve(String service, Contract contract, Location at, Handler handler) {
            throw new UnsupportedOperationException("no service is started");
        }

        @Override
        public Neighbour connect(String caller, Contract contract, Location to) {
            return new Neighbour() {
                @Override
                public <Q extends Record, R extends Record> R call(
                        Operation<Q, R> operation, Q request, Duration timeout) {
                    try (Socket socket = new Socket(to.host(), to.port());
                            PrintStream out = new PrintStream(socket.getOutputStream(), true, StandardCharsets.UTF_8)) {
                        out.println(operation.name());
                        socket.getInputStream().readAllBytes();
                        return operation.reply().cast(new Nothing());
                    } catch (IOException e) {
                        throw new CallException(CallException.Code.UNAVAILABLE, e.toString());
                    }
                }

                @Override
                public long payloadBytes(Record message) {
                    return 1;
                }

                @Override
                public void close() {}
            };
        }
    }
}
