package dev.rpcx.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXFuture;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that a call ends once, with its own reply or a true error, whatever the network does. */
@Timeout(60)
class FaultyLinkTest {
    @RPCXServer("echo")
    static final class Echo {
        final AtomicLong executed = new AtomicLong();

        @Method
        String echo(String text) {
            executed.incrementAndGet();
            return text;
        }

        /** Its replies are sent in the order of the requests. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String inOrder(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        @Method(timeoutMillis = 300)
        String echo(String text);
    }

    /** A client whose calls outlast the test. */
    @RPCXClient(remoteServerName = "echo")
    interface LastingEchoClient {
        @Method(timeoutMillis = 3_600_000)
        RPCXFuture<String> inOrder(String text);
    }

    private static final int CALLS = 150;

    private final Echo echo = new Echo();

    /**
     * Fails to accept, as in a process that has no file descriptor left. The system reports this at once, and again and
     * again.
     */
    private static final class Exhausted extends ServerSocket {
        private final int failures;
        private final AtomicLong asked = new AtomicLong();

        Exhausted(int failures) throws IOException {
            super(0, 50, InetAddress.getLoopbackAddress());
            this.failures = failures;
        }

        @Override
        public Socket accept() throws IOException {
            if (asked.getAndIncrement() < failures) {
                throw new IOException("Too many open files");
            }
            return super.accept();
        }
    }

    @Test
    void aLinkThatCannotAcceptPausesAndCountsWhatItHasAccepted() throws Exception {
        int failures = 5;
        Faults faults = Faults.seeded(7).losing(0.2);
        assertThat(lost(faults)).contains(true, false);
        for (int i = 0; i < 2; i++) {
            long began = System.nanoTime();
            try (Server server = new Server(0, RegistryServer.registry(echo)).start();
                    Exhausted listening = new Exhausted(i * failures);
                    FaultyLink link =
                            FaultyLink.to(new InetSocketAddress("127.0.0.1", server.port()), faults, listening);
                    Client client = Client.builder().connections(1).build()) {
                // the faults are those of the first connection, because a failed attempt to accept does not count as a
                // connection
                assertLosesTheSame(client.create(LastingEchoClient.class, "127.0.0.1", link.port()), faults);
                // each failure takes 10 ms, of which a clock may show a little less
                assertThat(System.nanoTime() - began).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(i * failures * 8L));
            }
        }
    }

    /** Returns how the calls of one caller ended. */
    private List<String> outcomes(Faults faults) throws Exception {
        List<String> outcomes;
        try (Server server = new Server(0, RegistryServer.registry(echo)).start();
                FaultyLink link = FaultyLink.to("127.0.0.1", server.port(), faults);
                Client client = Client.standard()) {
            outcomes = outcomes(client.create(EchoClient.class, "127.0.0.1", link.port()));
            assertThat(link.faults()).isPositive();
        }
        return checked(outcomes);
    }

    /** Returns the same for a call without sockets. */
    private List<String> outcomesInProcess(Faults faults) {
        List<String> outcomes;
        try (Server server = Server.builder(RegistryServer.registry(echo))
                        .inProcess()
                        .build()
                        .start();
                Client client = Client.builder().inProcess().faults(faults).build()) {
            outcomes = outcomes(client.create(EchoClient.class, "here", server.port()));
        }
        return checked(outcomes);
    }

    private static List<String> outcomes(EchoClient calls) {
        List<String> outcomes = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            try {
                assertThat(calls.echo("text " + i)).isEqualTo("text " + i);
                outcomes.add("replied");
            } catch (RPCXException e) {
                outcomes.add(e.code() + " " + e.executed());
            }
        }
        return outcomes;
    }

    private List<String> checked(List<String> outcomes) {
        long mayBeExecuted =
                outcomes.stream().filter(o -> !o.endsWith("NOT_EXECUTED")).count();
        assertThat(echo.executed.getAndSet(0)).isLessThanOrEqualTo(mayBeExecuted);
        return outcomes;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void underFaultsOfEveryKindACallEndsInTruth(long seed) throws Exception {
        Faults faults = Faults.seeded(seed)
                .delaying(0.05, Duration.ofMillis(3))
                .losing(0.01)
                .duplicating(0.01)
                .cutting(0.01);
        List<String> outcomes = seed == 3 ? outcomesInProcess(faults) : outcomes(faults);
        assertThat(outcomes).contains("replied").anyMatch(outcome -> !outcome.equals("replied"));
    }

    /**
     * Returns for each call whether its request or its reply is lost, if the calls are made one after the other on one
     * connection. It follows from the seed.
     */
    private static List<Boolean> lost(Faults faults) {
        Random up = faults.random(0, true);
        Random down = faults.random(0, false);
        List<Boolean> lost = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            lost.add(faults.fate(up).isLost() || faults.fate(down).isLost());
        }
        return lost;
    }

    /** Checks which calls have no end. It does not wait for them, because no clock can show that a call has no end. */
    private static void assertLosesTheSame(LastingEchoClient calls, Faults faults) throws Exception {
        List<Boolean> lost = lost(faults);
        List<RPCXFuture<String>> replies = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            RPCXFuture<String> reply = calls.inOrder("text " + i);
            replies.add(reply);
            if (!lost.get(i)) {
                assertThat(reply.get(50, TimeUnit.SECONDS)).isEqualTo("text " + i);
            }
        }
        for (int i = 0; i < CALLS; i++) {
            assertThat(replies.get(i).isDone()).as("call " + i).isEqualTo(!lost.get(i));
            replies.get(i).cancel(true);
        }
    }

    private void assertLinkLosesTheSame(Faults faults) throws Exception {
        try (Server server = new Server(0, RegistryServer.registry(echo)).start();
                FaultyLink link = FaultyLink.to("127.0.0.1", server.port(), faults);
                Client client = Client.standard()) {
            assertLosesTheSame(client.create(LastingEchoClient.class, "127.0.0.1", link.port()), faults);
        }
    }

    private void assertTheSameIsLostInProcess(Faults faults) throws Exception {
        try (Server server = Server.builder(RegistryServer.registry(echo))
                        .inProcess()
                        .build()
                        .start();
                Client client = Client.builder().inProcess().faults(faults).build()) {
            assertLosesTheSame(client.create(LastingEchoClient.class, "here", server.port()), faults);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {7, 8})
    void theSeedAloneDecidesWhatIsLost(long seed) throws Exception {
        Faults faults = Faults.seeded(seed).losing(0.02);
        assertThat(lost(faults)).contains(true, false);
        assertLinkLosesTheSame(faults);
        assertTheSameIsLostInProcess(faults);
    }

    @Test
    void aFrameThatIsLostLeavesItsCallToItsDeadline() throws Exception {
        Faults faults = Faults.seeded(7).losing(0.02);
        assertThat(outcomes(faults)).contains("DEADLINE_EXCEEDED MAYBE");
        assertThat(outcomesInProcess(faults)).contains("DEADLINE_EXCEEDED MAYBE");
    }

    @Test
    void withoutFaultsEveryCallIsAnswered() throws Exception {
        assertThat(lost(Faults.seeded(1))).containsOnly(false);
        assertLinkLosesTheSame(Faults.seeded(1));
        assertTheSameIsLostInProcess(Faults.seeded(1));
    }

    @Test
    void fractionOutsideItsRangeIsRefused() {
        assertThatThrownBy(() -> Faults.seeded(1).losing(1.5)).hasMessageContaining("0 to 1");
    }
}
